"""Credentials of vendors in every place of a capture, and what looks like them and stays.

The values are made here from their formats, so that no scanner of secrets takes this file for a leak.
"""

from __future__ import annotations

import itertools
import json
import random
import re
import time
from collections.abc import Callable

import pytest

from wirelint.capture.record import Record
from wirelint.capture.redact import Redactor
from wirelint.capture.secret_patterns import Form, find_tokens, forms, harmless
from wirelint.capture.secrets import MARK, Span

HEX, LOW, UP, WORD = "0123456789abcdef", "a-z0-9", "A-Z0-9", "A-Za-z0-9"
_SETS = {
    HEX: HEX,
    LOW: "abcdefghijklmnopqrstuvwxyz0123456789",
    UP: "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    WORD: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    "dec": "0123456789",
}

# `x40` forty hexadecimal digits, `w` letters and digits, `l` small ones, `u` capital ones, `d` digits.
KINDS: dict[str, str] = {
    "openai old": "sk-{w20}T3BlbkFJ{w20}", "openai project": "sk-proj-{w48}", "openai service": "sk-svcacct-{w48}",
    "openai admin": "sk-admin-{w48}", "anthropic": "sk-ant-api03-{w93}AA", "anthropic admin": "sk-ant-admin01-{w93}AA",
    "openrouter": "sk-or-v1-{x64}", "deepseek": "sk-{x32}", "langfuse": "sk-lf-{x8}-{x4}-{x4}-{x4}-{x12}",
    "groq": "gsk_{w52}", "xai": "xai-{w80}", "cerebras": "csk-{l48}", "perplexity": "pplx-{w48}", "nvidia": "nvapi-{w64}",
    "fireworks": "fw_{w24}", "together": "tgp_v1_{w43}", "elevenlabs": "sk_{x48}", "pinecone": "pcsk_{w6}_{w63}",
    "voyage": "pa-{w43}", "jina": "jina_{w60}", "replicate": "r8_{w37}", "tavily": "tvly-dev-{w32}",
    "firecrawl": "fc-{x32}", "brave": "BSA{w28}", "apify": "apify_api_{w36}", "browserbase": "bb_live_{w27}",
    "e2b": "e2b_{x40}", "langsmith": "lsv2_pt_{x32}_{x10}", "hugging face": "hf_{w34}", "hugging face org": "api_org_{w34}",
    "databricks": "dapi{x32}", "google": "AIza{w35}", "google oauth": "ya29.{w60}", "google client": "GOCSPX-{w28}",
    "google refresh": "1//0{w60}", "aws key id": "AKIA{u16}", "aws session id": "ASIA{u16}",
    "aws session token": "IQoJb3JpZ2luX2Vj{w300}", "aws session token old": "FwoGZXIvYXdz{w300}", "bedrock": "ABSK{w109}=",
    "azure client": "{w3}8Q~{w34}", "azure openai": "{w52}JQQJ99{w3}{u1}{w22}", "alibaba": "LTAI{w20}",
    "digitalocean": "dop_v1_{x64}", "digitalocean oauth": "doo_v1_{x64}", "digitalocean refresh": "dor_v1_{x64}",
    "heroku": "HRKU-AA{w58}", "fly": "fo1_{w43}", "supabase": "sbp_{x40}", "supabase secret": "sb_secret_{w31}",
    "planetscale": "pscale_tkn_{w43}", "planetscale password": "pscale_pw_{w43}", "vercel": "vercel_blob_rw_{w16}_{w30}",
    "netlify": "nfp_{w36}", "tailscale": "tskey-auth-{w12}-{w32}", "yandex": "AQVN{w36}", "kubeconfig":
    "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVk{w400}", "github": "ghp_{w36}", "github oauth": "gho_{w36}", "github app":
    "ghs_{w36}", "github fine": "github_pat_{w22}_{w59}", "gitlab": "glpat-{w20}", "gitlab deploy": "gldt-{w20}",
    "gitlab routable": "glpat-{w27}.01.{l9}", "gitlab runner": "GR1348941{w20}", "gitlab session":
    "_gitlab_session={l32}", "npm": "npm_{w36}", "pypi": "pypi-AgEIcHlwaS5vcmc{w90}", "rubygems": "rubygems_{x48}",
    "docker": "dckr_pat_{w27}", "artifactory": "AKCp{w69}", "circleci": "CCIPAT_{w22}_{x40}", "sonar": "squ_{x40}",
    "sourcegraph": "sgp_{x40}", "pulumi": "pul-{x40}", "postman": "PMAK-{x24}-{x34}", "terraform": "{w14}.atlasv1.{w67}",
    "octopus": "API-{u26}", "age": "AGE-SECRET-KEY-1{u58}", "1password account": "A3-{u6}-{u6}-{u5}-{u5}-{u5}-{u5}",
    "1password service": "ops_eyJ{w250}", "doppler": "dp.pt.{w43}", "doppler service": "dp.st.prd.{w43}",
    "vault": "hvs.{w95}", "vault batch": "hvb.{w140}", "adobe": "p8e-{l32}", "slack bot": "xoxb-{d12}-{d12}-{w24}",
    "slack user": "xoxp-{d12}-{d12}-{d12}-{x32}", "slack app": "xapp-1-{u11}-{d13}-{x64}", "sendgrid": "SG.{w22}.{w43}",
    "sendinblue": "xkeysib-{x64}-{w16}", "mailgun": "key-{x32}", "mailgun signing": "{x32}-{x8}-{x8}",
    "mailchimp": "{x32}-us14", "resend": "re_{w8}_{w24}", "twilio": "SK{x32}", "telegram": "{d10}:AA{w33}",
    "discord bot": "M{w23}.{w6}.{w38}", "atlassian": "ATATT3{w186}", "bitbucket": "ATBB{w32}", "linear": "lin_api_{w40}",
    "notion": "ntn_{d11}{w35}", "notion old": "secret_{w43}", "figma": "figd_{w40}", "airtable": "pat{w14}.{x64}",
    "asana": "2/{d16}/{d16}:{x32}", "hubspot": "pat-na1-{x8}-{x4}-{x4}-{x4}-{x12}", "typeform": "tfp_{w59}",
    "dynatrace": "dt0c01.{u24}.{u64}", "grafana": "glsa_{w32}_{x8}", "grafana cloud": "glc_{w100}",
    "grafana old": "eyJrIjoi{w80}", "new relic": "NRAK-{u27}", "new relic insert": "NRII-{w32}",
    "new relic insert, underlines": "NRII-{w8}_{w8}_{w14}", "zhipu": "{x32}.{w14}aZ", "mapbox": "sk.eyJ{w80}.{w22}",
    "nuget": "oy2{l43}", "crates.io": "cio{w32}", "twitter": "AAAAAAAAAAAAAAAAAAAAA{w30}%3D{w60}",
    "launchdarkly": "sdk-{x8}-{x4}-{x4}-{x4}-{x12}", "launchdarkly mobile": "mob-{x8}-{x4}-{x4}-{x4}-{x12}",
    "launchdarkly api": "api-{x8}-{x4}-{x4}-{x4}-{x12}",
    "contentful": "CFPAT-{w20}-{w22}", "adafruit": "aio_{w28}",
    "new relic licence": "{x36}NRAL", "sentry": "sntrys_eyJpYXQiO{w80}_{w43}", "sentry user": "sntryu_{x64}",
    "posthog": "phx_{w43}", "stripe": "sk_live_{w24}", "stripe restricted": "rk_test_{w24}", "stripe webhook":
    "whsec_{w32}", "square": "sq0atp-{w22}", "square secret": "sq0csp-{w43}", "square new": "EAAA{w60}",
    "facebook": "EAAC{w180}", "shopify": "shpat_{x32}", "shopify secret": "shpss_{x32}", "shippo": "shippo_live_{x40}",
    "flutterwave": "FLWSECK_TEST-{x32}-X", "duffel": "duffel_live_{w43}", "easypost": "EZAK{w54}",
    "plaid": "access-sandbox-{x8}-{x4}-{x4}-{x4}-{x12}", "dropbox": "sl.{w138}",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIi{w40}.{w43}", "maxmind": "{w6}_{w29}_mmk",
}  # fmt: skip

# Of these only a part is the secret: the rest of the address says whose it is, and stays.
ADDRESSES: dict[str, tuple[str, str]] = {
    "slack": ("https://hooks.slack.com/services/", "T{u9}/B{u9}/{w24}"),
    "slack workflow": ("https://hooks.slack.com/workflows/", "T{u9}/A{u9}/{d18}/{w24}"),
    "discord": ("https://discord.com/api/webhooks/123456789012345678/", "{w68}"),
    "discord old": ("https://discordapp.com/api/v10/webhooks/123456789012345678/", "{w68}"),
    "teams": ("https://acme.webhook.office.com/webhookb2/", "{x8}-{x4}@{x8}/IncomingWebhook/{x32}/{x8}-{x4}"),
    "zapier": ("https://hooks.zapier.com/hooks/catch/1234567/", "{l12}"),
    "telegram": ("https://api.telegram.org/bot", "{d10}:AA{w33}"),
    "user": ("https://u:", "{w20}@h.example"),
}

_NAMED = {"x": HEX, "w": WORD, "l": LOW, "u": UP, "d": "dec"}


def made(kind: str) -> str:
    """One credential of this format; always the same one. Its runs hold a digit, as nearly all do."""
    chosen = random.Random(kind)

    def run(match: re.Match[str]) -> str:
        characters = "".join(chosen.choice(_SETS[_NAMED[match[1]]]) for _ in range(int(match[2])))
        return characters[:-1] + "7" if int(match[2]) > 8 else characters

    return re.sub(r"\{([xwlud])(\d+)\}", run, kind)


SECRETS = {name: made(kind) for name, kind in KINDS.items()}

PLACES: dict[str, Callable[[str], str]] = {
    "prose": lambda secret: f"Use the key {secret}, please.",
    "end of a sentence": lambda secret: f"The key is {secret}",
    "full stop": lambda secret: f"It is {secret}. Use it.",
    "quoted": lambda secret: f'its value `{secret}` or "{secret}"',
    "lines": lambda secret: f"first\n{secret}\nlast",
    "code block": lambda secret: f"```python\nclient = Client('{secret}')\n```",
    "yaml": lambda secret: f"service:\n  value: {secret}\n",
    "environment": lambda secret: f"export SOMETHING={secret}\n",
    "header quoted": lambda secret: f"curl -H 'X-Some-Header: {secret}' https://h.example",
    "authorization": lambda secret: f"Authorization: Bearer {secret}",
    "address": lambda secret: f"https://h.example/v1?q=a%20{secret}&b=1",
    "other scripts": lambda secret: f"密钥{secret}。 مفتاح {secret}",
}


def survives(secret: str, text: str) -> bool:
    """Return True if eight characters of a secret, behind what all of its kind begin with, are in a text."""
    tail = secret[len(secret) // 3 :]
    return any(tail[at : at + 8] in text for at in range(len(tail) - 7))


@pytest.mark.parametrize("name", SECRETS)
def test_no_credential_survives_anywhere(name: str) -> None:
    redactor, secret = Redactor(b"k"), SECRETS[name]
    for place, wrap in PLACES.items():
        text = wrap(secret)
        assert not harmless(text), place
        assert not survives(secret, redactor.text(text)), place
        plain = json.dumps({"messages": [{"role": "tool", "content": text}]}, ensure_ascii=False)
        nested = json.dumps({"arguments": json.dumps({"q": json.dumps({"text": text})})})
        for document in (plain, nested):
            assert not harmless(document), place
            redacted = (redactor.body(document.encode()) or b"").decode()
            assert not survives(secret, redacted), place
            assert json.loads(redacted).keys() == json.loads(document).keys()
            assert redactor.body(redacted.encode()) == redacted.encode(), "redacted twice"
    assert not survives(secret, redactor.url(f"https://h.example/v1/{secret}/x?y={secret}"))
    assert not survives(secret, str(redactor.headers((("x-note", f"see {secret}"),))))


def _stream(pieces: list[str]) -> bytes:
    events = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode() + b"data: [DONE]\n\n"


@pytest.mark.parametrize("name", SECRETS)
def test_no_credential_survives_in_a_stream(name: str) -> None:
    """Whatever the cuts, what a client joins is the same, and the events and their framing stay."""
    text = f"So: {SECRETS[name]} it is"
    chosen, joined = random.Random(name), set[str]()
    whole = [text], [*text], [text[:20], text[20:]]
    for pieces in (*whole, *(_cut(text, chosen) for _ in range(3))):
        body = Redactor(b"k").body(_stream(["", *pieces, "."]))
        assert body is not None
        events = [json.loads(line[6:]) for line in body.decode().split("\n\n")[:-2]]
        assert len(events) == len(pieces) + 2
        joined.add("".join(event["choices"][0]["delta"]["content"] for event in events))
    assert len(joined) == 1
    assert not survives(SECRETS[name], joined.pop())


def _cut(text: str, chosen: random.Random) -> list[str]:
    cuts = [0, *sorted(chosen.sample(range(1, len(text)), 6)), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(cuts)]


@pytest.mark.parametrize("name", ADDRESSES)
def test_addresses_that_hold_a_credential(name: str) -> None:
    before, kind = ADDRESSES[name]
    secret, redactor = made(kind), Redactor(b"k")
    record = Record("1", "POST", before + secret, (), json.dumps({"a": f"post to {before}{secret} now"}).encode())
    redacted = redactor.record(record)
    for text in (redacted.url, (redacted.request_body or b"").decode(), redactor.text(f"see {before}{secret}.")):
        assert not survives(secret.partition("@")[0] if name == "user" else secret, text)
        assert name == "user" or before in text
        assert MARK.search(text) is not None or "%5Bredacted" in text


_CHOSEN = random.Random("what stays")


def _run(kind: str, size: int) -> str:
    return "".join(_CHOSEN.choice(_SETS[kind]) for _ in range(size))


STAYS: dict[str, str] = {
    "uuid": "3f2504e0-4f89-11d3-9a0c-0305e82c3301 and urn:uuid:3f2504e0-4f89-11d3-9a0c-0305e82c3301",
    "hashes": f"{_run(HEX, 32)} {_run(HEX, 40)} {_run(HEX, 64)} sha256:{_run(HEX, 64)} {_run(HEX, 7)}",
    "git": f"commit {_run(HEX, 40)} https://github.com/o/r/commit/{_run(HEX, 40)} v1.0-12-g{_run(HEX, 7)}",
    "etag": f'W/"{_run(HEX, 32)}" {_run(HEX, 32)}-3 {_run(HEX, 32)}-us',
    "calls": f"call_{_run(WORD, 24)} toolu_01{_run(WORD, 22)} chatcmpl-{_run(WORD, 29)} chatcmpl-tool-{_run(HEX, 32)}",
    "items": f"fc_{_run(HEX, 50)} msg_{_run(HEX, 50)} rs_{_run(HEX, 50)} resp_{_run(HEX, 48)} ws_{_run(HEX, 50)}",
    "kimi": "functions.read:0 functions.get_weather:12 tooluse_" + _run(WORD, 22),
    "requests": f"req_{_run(HEX, 32)} req_011C{_run(WORD, 20)} gen-1741{_run('dec', 6)}-{_run(WORD, 20)} "
    f"cf-ray {_run(HEX, 16)}-VIE",
    "files": f"file-{_run(WORD, 24)} asst_{_run(WORD, 24)} thread_{_run(WORD, 24)} run_{_run(WORD, 24)} vs_{_run(HEX, 32)}",
    "batches": f"msgbatch_{_run(WORD, 24)} batch_{_run(HEX, 24)} org-{_run(WORD, 24)} proj_{_run(WORD, 24)} "
    f"user-{_run(WORD, 24)}",
    "fingerprint": f"fp_{_run(HEX, 10)} container_{_run(HEX, 40)} ft:gpt-4o-mini-2024-07-18:acme::{_run(WORD, 8)}",
    "traces": f"00-{_run(HEX, 32)}-{_run(HEX, 16)}-01 1-{_run(HEX, 8)}-{_run(HEX, 24)}",
    "models": "anthropic.claude-3-5-sonnet-20241022-v2:0 accounts/fireworks/models/llama-v3p1-405b-instruct "
    "us.anthropic.claude-sonnet-4-20250514-v1:0 Qwen/Qwen2.5-Coder-32B-Instruct-AWQ @cf/meta/llama-3.3-70b-instruct-fp8",
    "accounts": f"AC{_run(HEX, 32)} arn:aws:bedrock:us-east-1:123456789012:inference-profile/{_run(LOW, 12)}",
    "webhook ids": "https://discord.com/api/webhooks/123456789012345678 https://hooks.slack.com/services/ "
    "https://slack.com/api/chat.postMessage",
    "image": "data:image/png;base64,iVBORw0KGgo" + "".join(_CHOSEN.choice(_SETS[WORD] + "+/") for _ in range(20000)),
    "encrypted": "gAAAAAB" + "".join(_CHOSEN.choice(_SETS[WORD] + "-_") for _ in range(20000)),
    "signature": "EqQBCkYIBxgCKkB" + "".join(_CHOSEN.choice(_SETS[WORD] + "+/") for _ in range(20000)) + "==",
    "words": "pa-rticular key-value sdk-based sess-ions task-manager-service-for-7-teams risk-management-2024-report-final "
    "secret_santa_list secret_getSomethingFromSomewhere re_evaluate re_calculate_the_total_amount_of_2 "
    "fc-barcelona pul-sar",
    "styles": "sk-child-circle-before-12 sk-fading-circle1 sk-cube-grid-9 sk-folding-cube sk-wandering-cubes2 "
    "precio-de-la-maquina-del-socio SOCIOSSWS the machine that I login to with a password",
    "variables": "PRIMARY_KEY=user_id_of_2024 CACHE_KEY=user:12345:profile NEXT_TOKEN=aB3dE5fG7hJ9kLmN "
    "IDEMPOTENCY_KEY=0b1e6a5c-93a0-4a53-9c43-0c4d6a1f2b3c STRANGE_KEY=0b1e6a5c-93a0-4a53-9c43-0c4d6a1f2b3c "
    "SSH_PUBLIC_KEY=AAAAC3NzaC1lZDI1NTE5 EVENT_KEY=item-12-of-list VENDOR_KEY=/etc/keys/server1.pem "
    "MY_KEY=created_at_time the machine needs login and password reset",
    "code": "self.atlasv1.run(hvs.x) SK = 1; dp.pt.x; s.upper(); s.split; ya29 = 1; obj.acc_count; Q~x; EAAA; "
    "sk_test; npm_config_cache",
    "numbers": "3.14159265358979 1741234567.123456 12:34:56 1234567890:AM 2/3 1//2 1//0 10:15:00.000Z",
    "stand-ins": "sk-... ghp_<token> hf_xxx $GITHUB_TOKEN dop_v1_TOKEN glpat-AAAA AKIA...",
    "license": "NRAL BSA 3-Clause, BSD; SK, EZAK; https://www.gsk-boosts.example/lung-cancer-portfolio-with-10-6-billion",
}  # fmt: skip


@pytest.mark.parametrize("name", STAYS)
def test_what_is_no_credential_stays(name: str) -> None:
    text, redactor = STAYS[name], Redactor(b"k")
    assert redactor.text(text) == text
    for document in (json.dumps({"content": text}), json.dumps({"arguments": json.dumps({"id": text})})):
        assert redactor.body(document.encode()) == document.encode()
    pieces = [text[at : at + 11] for at in range(0, min(len(text), 2000), 11)]
    assert redactor.body(_stream(pieces)) == _stream(pieces)


def test_each_form_has_a_sign_and_is_looked_for_in_linear_time() -> None:
    """Beginnings, repeated: as many bytes of them take as long as others do."""
    took: dict[str, float] = {}
    for form in forms():
        begin = time.process_time()
        for text in ((form.prefix or f"a{form.anchor}") * 2000, f"{form.prefix}{'a1' * 3000} " * 2):
            list(find_tokens(text))
            harmless(text)
        took[form.name + form.prefix] = time.process_time() - begin
    usual = sorted(took.values())[len(took) // 2]
    assert max(took.values()) < max(40 * usual, 0.5)


def test_a_form_is_tried_only_where_its_prefix_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    find = Form.find

    def counting(self: Form, text: str, anchor: int) -> tuple[Span | None, int]:
        tried.append(self.name)
        return find(self, text, anchor)

    monkeypatch.setattr(Form, "find", counting)
    assert list(find_tokens("sk-" * 5000)) == []
    assert len(tried) < 50
    assert [span.secret for span in find_tokens(f"-{'sk-' * 3}")] == []


def test_an_old_token_of_vault_may_end_a_sentence() -> None:
    """Its own prefix is a letter and a full stop; an attribute behind it (`s.a.b`) is what it must not be taken for."""
    token = made("s.{w10}aZ{w12}")
    assert not survives(token, Redactor(b"k").text(f"It is {token}. Use it."))
    assert token in Redactor(b"k").text(f"{token}.split()")
