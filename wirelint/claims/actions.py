"""Verbs of action: what an agent says it did or is about to do, grouped by the kind of tool that would do it.

A verb is listed once by its base form; the English forms are derived; other languages
are listed in `tongues`. What a verb acts on is told by *topics*: nouns, sorted into fields such as `file`, `web`,
`mail`, in which a claim and a tool must meet.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, get_args

from wirelint.claims.tongues import CHINESE, FRENCH, GERMAN, ITALIAN, JAPANESE, PORTUGUESE, SPANISH, Forms

Kind = Literal["search", "read", "write", "create", "delete", "send", "run", "book", "control"]
Topic = Literal[
    "file",
    "web",
    "knowledge",
    "data",
    "mail",
    "calendar",
    "order",
    "travel",
    "ticket",
    "weather",
    "device",
    "run",
    "memory",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

ENGLISH: Mapping[Kind, str] = MappingProxyType(
    {
        "search": "search query browse google grep look_up look_for",
        "read": "read open view inspect examine check list fetch retrieve download load scan look_at look_into pull_up "
        "go_through look_through look_over pull extract visit "
        "review get explore access consult verify",
        "write": "update edit modify change patch replace save rename rewrite add fix apply append insert move copy "
        "refactor "
        "overwrite write set_up configure adjust correct bump adapt port implement upload log record",
        "create": "create generate make register file add open set_up write build log",
        "delete": "delete remove erase clear purge drop wipe cancel uninstall",
        "send": "send email e-mail post notify message forward submit publish share text ping escalate transfer reply",
        "run": "テスト コマンド スクリプト ビルド サーバー サーバ teste comando servidor"
        " run execute call invoke test compile build install deploy start restart launch commit push merge rerun "
        "stop "
        "trigger kill use format lint query",
        "book": "book reserve schedule order purchase buy refund pay issue process cancel reschedule charge subscribe "
        "enroll place",
        "control": "turn_on turn_off switch_on switch_off turn switch lock unlock dim set adjust lower raise enable "
        "disable activate deactivate",
    }
)
_IRREGULAR = {
    "read": "read read",
    "write": "wrote written",
    "rewrite": "rewrote rewritten",
    "overwrite": "overwrote overwritten",
    "get": "got gotten",
    "set": "set set",
    "send": "sent sent",
    "make": "made made",
    "build": "built built",
    "run": "ran run",
    "rerun": "reran rerun",
    "pay": "paid paid",
    "buy": "bought bought",
    "look": "looked looked",
    "go": "went gone",
}
_DOUBLED = frozenset({
    "drop", "commit", "submit", "transfer", "dim", "stop", "grep", "log", "scan", "get", "set", "run", "rerun",
    "format",
})  # fmt: skip

_TOPICS: Mapping[Topic, str] = MappingProxyType(
    {
        "file": "ファイル フォルダ ディレクトリ リポジトリ コードベース arquivo pasta diretório "
        "repositório cartella repositorio code project_structure project_files "
        "file folder directory repo repository codebase filesystem workspace branch commit readme "
        "dockerfile makefile disk datei ordner verzeichnis fichier dossier répertoire archivo "
        "fichero carpeta directorio 文件 目录 文件夹 代码库 仓库 分支 source config configuration "
        "log pull origin",
        "web": "ウェブ サイト ネット ニュース インターネット notícias notizie sito web internet online "
        "website site webpage url news google link blog seite netz webseite página sitio "
        "actualités noticias 网络 网上 网页 网站 新闻 互联网 browser http",
        "knowledge": "ドキュメント 資料 マニュアル ナレッジ documentação documentazione base_de_conhecimento "
        "base_di_conoscenza ヘルプ artigo articolo artículo knowledge kb documentation docs wiki "
        "article index faq handbook library archive corpus wissensdatenbank wissensbasis "
        "dokumentation base_de_connaissances base_de_conocimientos 知识库 文档 资料库 document "
        "notion confluence vault note",
        "data": "データベース テーブル レコード 顧客 アカウント 数据表 banco_de_dados tabela conta "
        "registro tabella conto utente 用户 客户 database db table record row sql warehouse crm "
        "customer contact lead account user profile spreadsheet sheet dataset entry employee "
        "datenbank tabelle datensatz kunde konto base_de_données compte client base_de_datos "
        "tabla cuenta cliente 数据库 记录 账户 column schema system enregistrement eintrag "
        "settings address preference",
        "mail": "メール メッセージ 受信トレイ mensagem messaggio posta correio email e-mail mail inbox "
        "mailbox message notification sms slack channel invite invitation newsletter reply teams "
        "nachricht mails e-mails courriel correo mensaje 邮件 消息 短信 收件箱 通知 chat discord",
        "calendar": "予定 カレンダー 会議 打ち合わせ 予約 リマインダー タスク スケジュール reunião evento "
        "compromisso lembrete riunione appuntamento promemoria tarefa calendar event meeting "
        "appointment schedule reminder booking reservation availability alarm timer task todo "
        "slot agenda kalender termin besprechung erinnerung aufgabe buchung calendrier "
        "rendez-vous réunion rappel calendario cita reunión recordatorio 日历 日程 会议 提醒 任务 "
        "闹钟 预约",
        "order": "注文 返金 請求 配送 在庫 荷物 支払 fatura reembolso entrega ordine fattura rimborso "
        "spedizione order purchase cart product item inventory stock shipment delivery package "
        "return refund payment invoice subscription transaction balance money transfer price "
        "bestellung lieferung rechnung zahlung erstattung commande livraison facture paiement "
        "remboursement pedido envío factura pago 订单 库存 退款 付款 发票 物流 shipping ship "
        "tracking share",
        "travel": "フライト ホテル 航空券 部屋 voo quarto volo camera tavolo flight hotel room trip train "
        "ticket seat restaurant table car rental reservation booking flug zimmer tisch vol "
        "chambre vuelo habitación mesa 航班 酒店 房间 餐厅 机票",
        "ticket": "チケット chamado issue ticket pr bug jira github incident case pull_request escalation "
        "support vorgang 工单 问题单",
        "weather": "天気 気温 previsão meteo weather forecast temperature wetter météo clima tiempo 天气",
        "device": "照明 電気 エアコン ライト 暖房 luci luce lâmpada light lamp thermostat heating door lock "
        "garage tv music volume camera fan blind temperature alarm speaker licht lampe heizung "
        "tür lumière chauffage porte luz calefacción puerta 灯 空调 门 音量",
        "run": "test suite build command script server deployment service container process linter lint "
        "benchmark migration pipeline job query code program shell terminal check skript befehl "
        "tests commande comando prueba 测试 命令 脚本 代码 服务 程序 python workflow task branch "
        "commit nginx docker package dependency change",
        "memory": "memory memories fact preference gedächtnis erinnerungen mémoire memoria 记忆",
    }
)


def _past(verb: str) -> tuple[str, str]:
    head, _, tail = verb.partition("_")
    irregular = _IRREGULAR.get(head)
    if irregular:
        past, participle = irregular.split()
    elif head.endswith("e"):
        past = participle = f"{head}d"
    elif head.endswith("y") and head[-2] not in "aeou":
        past = participle = f"{head[:-1]}ied"
    else:
        past = participle = f"{head}{head[-1]}ed" if head in _DOUBLED else f"{head}ed"
    if head == "cancel":
        past = participle = "cancell?ed"
    return (f"{past} {tail}", f"{participle} {tail}") if tail else (past, participle)


def _gerund(verb: str) -> str:
    head, _, tail = verb.partition("_")
    if head in _DOUBLED:
        made = f"{head}{head[-1]}ing"
    elif head == "cancel":
        made = "cancell?ing"
    elif head.endswith("e") and not head.endswith("ee"):
        made = f"{head[:-1]}ing"
    else:
        made = f"{head}ing"
    return f"{made} {tail}" if tail else made


def _by_form(form: Iterable[tuple[Kind, str]]) -> dict[str, frozenset[Kind]]:
    kinds: dict[str, set[Kind]] = {}
    for kind, word in form:
        for spelled in (word.replace("l?", "l"), word.replace("l?", "")) if "l?" in word else (word,):
            kinds.setdefault(spelled, set()).add(kind)
    return {word: frozenset(found) for word, found in kinds.items()}


_VERBS = [(kind, verb) for kind in KINDS for verb in ENGLISH[kind].split()]
_AHEAD: Mapping[Kind, str] = {
    "search": "find locate look_into dig_into gather",
    "read": "see take_a_look_at have_a_look_at look_at investigate analyze analyse gather dig_into retrieve",
    "run": "try",
}
"""Verbs that announce an action and claim none: what was "found" or "seen" may stand in the text itself."""
BASE = _by_form((kind, verb.replace("_", " ")) for kind, verb in _VERBS)
PAST = _by_form((kind, _past(verb)[0]) for kind, verb in _VERBS)
PARTICIPLE = _by_form((kind, _past(verb)[1]) for kind, verb in _VERBS)
GERUND = _by_form((kind, _gerund(verb)) for kind, verb in _VERBS)


def _foreign(forms: Forms) -> dict[str, frozenset[Kind]]:
    return _by_form((kind, word.replace("_", " ")) for kind in KINDS for word in forms[kind].split())


_TONGUES = (GERMAN, FRENCH, SPANISH, PORTUGUESE, ITALIAN, CHINESE, JAPANESE)
DONE = tuple(_foreign(tongue.done) for tongue in _TONGUES)
"""Finished forms of German, French, Spanish, Portuguese, Italian, Chinese, Japanese, in this order."""
SOON = tuple(_foreign(tongue.soon) for tongue in _TONGUES)
"""Forms of announcements, in the order of `DONE`."""
AHEAD = {**BASE, **_by_form((kind, verb.replace("_", " ")) for kind, verbs in _AHEAD.items() for verb in verbs.split())}
"""Base forms in announcements."""
ASKED = tuple(_foreign(tongue.asked) for tongue in _TONGUES)
"""Forms of orders, in the order of `DONE`; the last two are languages without blanks."""
ELSEWHERE = tuple(
    _by_form(
        (kind, word.replace("_", " "))
        for kind in KINDS
        for form in (tongue.soon, tongue.asked)
        for word in form[kind].split()
    )
    for tongue in _TONGUES
)
"""Infinitives and present forms of other languages, as tools are named and described, in the order of `DONE`."""
_OWN_TOPICS: Mapping[Topic, str] = {
    "mail": "emailed e-mailed texted messaged replied",
    "ticket": "escalated",
    "file": "committed pushed merged",
    "run": "deployed compiled installed restarted linted",
    "order": "refunded purchased",
    "calendar": "scheduled rescheduled",
    "web": "googled browsed",
}
VERB_TOPICS = {verb: topic for topic, verbs in _OWN_TOPICS.items() for verb in verbs.split()}
"""Verbs that say by themselves what they act on."""


def alternatives(words: Iterable[str]) -> str:
    """A regex alternative of words, longest first."""
    return "|".join(re.escape(word).replace(r"\ ", " ") for word in sorted(words, key=lambda word: (-len(word), word)))


TOPIC_OF: Mapping[str, frozenset[Topic]]
_collected: dict[str, set[Topic]] = {}
for _topic, _nouns in _TOPICS.items():
    for _noun in _nouns.split():
        _collected.setdefault(_noun.replace("_", " "), set()).add(_topic)
TOPIC_OF = MappingProxyType({noun: frozenset(found) for noun, found in _collected.items()})
_CJK_TOPICS = tuple(noun for noun in TOPIC_OF if "\u3040" <= noun[0] <= "\u9fff")
_PHRASES = tuple(noun for noun in TOPIC_OF if " " in noun)
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


def words_of(text: str) -> frozenset[str]:
    """The words of a text, lower-cased, each also without a plural ending."""
    found = {word.lower() for word in _WORD.findall(text)}
    singular = {word[:-1] for word in found if word.endswith("s") and len(word) > 3}
    singular |= {f"{word[:-3]}y" for word in found if word.endswith("ies") and len(word) > 4}
    singular |= {word[:-2] for word in found if word.endswith(("xes", "ches", "shes", "sses", "ien", "ern"))}
    return frozenset(found | singular)


def bare(text: str) -> str:
    """A text without its accents: `hôtel` is a hotel in most languages."""
    return "".join(sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign))


def topics_of(text: str) -> frozenset[Topic]:
    """The fields that the nouns of a text belong to."""
    words = words_of(text)
    if not text.isascii():
        words |= words_of(bare(text))
    found = {topic for word in words for topic in TOPIC_OF.get(word, ())}
    lowered = text.lower()
    for noun in (*_CJK_TOPICS, *_PHRASES):
        if noun in lowered:
            found |= TOPIC_OF[noun]
    return frozenset(found)
