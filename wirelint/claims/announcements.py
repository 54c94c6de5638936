"""What a text ends on announcing: an action that is said to come next, and comes not.

Only the end of a text counts: an announcement that is followed by the answer, a question, an offer or a block of text has
been kept, or waits for the user. Sentences that speak of a condition, of another time or of the user's part announce
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from wirelint.claims.actions import AHEAD, ASKED, BASE, GERUND, SOON, Kind, alternatives
from wirelint.claims.foreign_claims import verb_of
from wirelint.text.prose import Cues, Prose, Sentence, has_word_at_end

# What a user's words are after: an action, an account of what was done, or a text to be composed.

_INTENT_BASES = alternatives(BASE)
_ASKS = re.compile(
    rf"(?:^|[.!?;,:\n]|\b(?:please|pls|can you|could you|would you|will you|and|then|to|now|just|also|kindly|"
    rf"let['’]s|sure|me)\b)[ ]*(?P<verb>{_INTENT_BASES}|find|text|mail|remind|tell(?! me))\b",
    re.IGNORECASE,
)
_HOW_TO = re.compile(
    r"\b(?:how (?:do|can|to|would|should|does|did)|why (?:do|does|did|is|was)|what (?:does|happens|is the))\b[^.?!\n]*",
    re.IGNORECASE,
)
_EXTRA_ASKS: dict[str, frozenset[Kind]] = {
    "find": frozenset({"search"}),
    "mail": frozenset({"send"}),
    "tell": frozenset({"send"}),
    "remind": frozenset({"create", "book", "write"}),
}
_ASSENT = re.compile(
    r"\W*(?:yes|yep|yeah|sure|ok(?:ay)?|please do|go ahead|do it|correct|right|confirmed|that works|sounds good|ja|gern\w*|"
    r"oui|s[ií]|sim|claro|好的?|可以|はい)\b",
    re.IGNORECASE,
)
_OFFER = re.compile(
    rf"\b(?:shall I|should I|may I|can I|do you want me to|would you like me to|want me to) (?:now |go ahead and )?"
    rf"(?P<verb>{_INTENT_BASES})\b",
    re.IGNORECASE,
)
_LONGEST_ASSENT = 60
_FOREIGN_ASKS = tuple(re.compile(rf"\b(?:{alternatives(table)})\b", re.IGNORECASE) for table in ASKED[:-2])
_LOOKS_BACK = re.compile(
    r"\b(?:what|which|why|how|when|where|who)\b[^?.]{0,40}\b(?:did|have|had|was|were) (?:you|that|it|this)\b|"
    r"^\s*(?:did|have|were|are) you\b|\bhave you\b|"
    r"\b(?:recap|remind me (?:what|which|how)|so far|summari[sz]e (?:what|our|the (?:conversation|session|chat)|"
    r"everything)|what happened|what['’]s the status|"
    r"are you sure|is it done|where(?:['’]s| is) (?:that|it) from|what was|how come|you (?:said|told|"
    r"found|did))\b|"
    r"\bwas hast du\b|\bhast du\b|\bqu['’]as-tu\b|\bas-tu\b|\bavez-vous\b|\bqué (?:hiciste|has)\b|做了什么|"
    r"你(?:刚才|之前)",
    re.IGNORECASE,
)
_VOICED = (
    r"(?:haikus?|poems?|sonnet|limerick|ballad|lyrics|song|verses?|stor(?:y|ies)|tale|essay|monologue|dialog(?:ue)?s?|"
    r"novel|scene|diary(?: entry)?|journal entry|log ?book entry|joke|speech|toast|bio|testimonial|"
    r"stand-?up(?: (?:text|notes?|update))?|"
    r"out[- ]of[- ]office(?: \w+)?|auto-?(?:reply|replies|responder|response)|canned (?:reply|response|answer)|macros?|"
    r"(?:reply|e?-?mail|message|text|answer) templates?|templates? (?:for|text)|cover letter|bug reports?|release notes?|"
    r"change ?log(?: entry)?|commit messages?|star (?:answer|story|method|example)|interview answer|"
    r"(?:answer|story|example)[^.!?\n]{0,20}\bstar\b|blog post|tweet|newsletter|press release|apology|invitation|"
    r"memo|status update|post-?mortem|incident report|cover story|caption|slogan|headline|"
    r"gedicht|geschichte|abwesenheitsnotiz|poème|histoire|poema|cuento|poesia|俳句|诗)"
)
"""Kinds of texts in which "I" is whoever the text speaks for: to name one is to ask for it."""
_GENRE = _VOICED.replace("|scene|", "|scene (?:about|where|between|with|set|in which)|")
"""Of a bare phrase: "the night scene" is one of a home as well."""
_COMPOSES = re.compile(
    r"\b(?:write|draft|compose|rephrase|reword|translate|rewrite|proofread|generate|give me|tell|make|suggest|phrase|"
    r"formulate|polish|shorten|continue|come up with|prepare|"
    rf"summari[sz]e)\b[^.!?\n]{{0,60}}\b(?:{_VOICED}|"
    r"excuses?|phrases?|reasons?|wordings?|letter|post|script|article|message|e?-?mail|reply|response|note|notes|example|sentences?|lines?|quote|"
    r"transcript|conversation|report|paragraph|german|french|spanish|english|chinese|review|"
    r"announcement)\b|"
    r"\b(?:write|retell|tell|summari[sz]e|phrase|say)\b[^.!?\n]{0,60}\b(?:as (?:an?|if|though)|like an?|in the (?:voice|"
    r"style|role|person) of|from the (?:perspective|point of view|view) of)\b|"
    r"\bwrite (?:to|back|(?:it |this |that )?in my name)\b|"
    r"\b(?:rephrase|paraphrase|reword|rewrite|proofread|what would you (?:say|write|answer|reply)|"
    r"ways to (?:say|put|phrase|tell)|übersetze\w*|traduis\w*|traduce|translate|translation|traduza|"
    r"traduci|formuliere|reformule)\b|翻译|翻訳|訳して|改写|改得|润色|换个说法|言い換え",
    re.IGNORECASE,
)
_NAMES_GENRE = re.compile(
    rf"^\W*(?:(?!(?:{_INTENT_BASES}|find|did|do|is|was|has|what|where|which|who|how|why|when|my last|the last)\b)[\w'’-]+ "
    rf"){{0,4}}?(?:{_GENRE}|"
    r"(?:short|quick|polite|friendly|formal|thank-you|sorry|follow-up|welcome|farewell|draft) (?:e?-?mail|reply|message|"
    r"letter|note|answer|response))\b",
    re.IGNORECASE,
)
"""A bare noun phrase: "short poem on lamps", "out-of-office reply"."""
_LONGEST_PHRASE = 160
_BESIDES = re.compile(
    rf"(?:\b(?:and|then|also|afterwards)|[,;.!&\n]) *(?:(?:and|then|also|please|just|now|directly|finally|can you|"
    rf"could you) )*(?P<verb>{_INTENT_BASES}|mail|text)\b",
    re.IGNORECASE,
)
_PAYLOAD = re.compile(r"[:：]\s|[\"“„«「]")
_PLAYS = re.compile(
    r"\brole-?play\w*|\bpretend\b|\bin character\b|\bimpersonate\b|\bmock interview\b|\bfiction(?:al)?\b|"
    r"\bplay(?:ing)? (?:the (?:role|part)\b|(?:the |an? |my )(?:[\w-]+ ){0,2}?(?:\w+(?:er|or|ist|ee|ant|man|ian)|"
    r"candidate|student|patient|character|friend|boss|client|npc)\b)|"
    r"\b(?:act|answer|speak|talk|respond|reply|write) (?:as if you|like you|as though you)\b|"
    r"\b(?:imagine|suppose|assume|say) (?:that )?you(?:['’]re| are| were)\b|\byou(?:['’]re| are) (?:now )?(?:playing|"
    r"a character)\b|"
    r"\A\W*you(?:['’]re| are) an? (?![^.!?\n]*\b(?:assistant|agent|bot|ai|model|system|helper|expert|tool)\b)|"
    r"\b(?:about|describe|of) an? (?:time|situation|occasion|moment|day)(?: \w+)? (?:when |where |in which |"
    r"that )?you\b|"
    r"\b(?:spiel\w*|mim\w*|gib|sei) (?:mal |jetzt )?(?:einen?|die rolle|den|eine) \w+|\brollenspiel\b|\bstell "
    r"dir vor\b|"
    r"\btu so,? als\b|\bjoue\w* (?:le r[ôo]le|un|une|le|la) \w+|\bfais (?:comme si|semblant)\b|\bimagine que tu\b|"
    r"\b(?:haz|actúa|finge|interpreta|imagina)\w* (?:de|como|que|el papel)\b|\bjuego de rol\b|"
    r"\b(?:finja|aja como|faça o papel|imagine que você|fai finta|recita|interpreta il ruolo|immagina di)\b|"
    r"扮演|假装|角色扮演|假设你|になりきって|役を演じ|ロールプレイ|のふりを",
    re.IGNORECASE,
)


def asked(text: str) -> frozenset[Kind]:
    """The kinds of action that a user's words ask for."""
    kinds: set[Kind] = set()
    text = _HOW_TO.sub(" ", text)
    for match in _ASKS.finditer(text):
        verb = match["verb"].lower()
        kinds |= BASE.get(verb) or _EXTRA_ASKS.get(verb, frozenset())
    for table, pattern in zip(ASKED, _FOREIGN_ASKS, strict=False):
        for found in pattern.finditer(text):
            kinds |= table.get(found[0].lower(), frozenset())
    for table in ASKED[-2:]:
        kinds.update(kind for word, found_kinds in table.items() if word in text for kind in found_kinds)
    return frozenset(kinds)


def assented(words: str, before: str) -> frozenset[Kind]:
    """The kinds of action that a reply has offered and the user has agreed to: "Shall I refund it?" "Yes please"."""
    if len(words) > _LONGEST_ASSENT or not _ASSENT.match(words):
        return frozenset()
    return frozenset(kind for match in _OFFER.finditer(before[-600:]) for kind in BASE.get(match["verb"].lower(), ()))


def looks_back(text: str) -> bool:
    """Return True if a user asks about what was done before, not for something to be done."""
    return _LOOKS_BACK.search(text) is not None


def composes(text: str) -> bool:
    """Return True if a user asks for a text, in which "I" is whoever the text speaks for."""
    if _COMPOSES.search(text) is not None:
        return True
    return len(text) <= _LONGEST_PHRASE and "?" not in text and _NAMES_GENRE.match(text) is not None


def besides(text: str) -> frozenset[Kind]:
    """The kinds of action that are ordered beside a text to be composed: "draft a note and send it to Ann"."""
    payload = _PAYLOAD.search(text)
    order = text[: payload.start()] if payload else text
    kinds: set[Kind] = set()
    for match in _BESIDES.finditer(order):
        verb = match["verb"].lower()
        kinds |= BASE.get(verb) or _EXTRA_ASKS.get(verb, frozenset())
    return frozenset(kinds)


def plays(text: str) -> bool:
    """Return True if a text asks for a part to be played: what its "I" has done is fiction, or somebody's past."""
    return _PLAYS.search(text) is not None


@dataclass(frozen=True, slots=True)
class Announcement:
    """An action that is said to come next. `start`, `end`: its sentence. `at_once`: it is about to happen.

    `bare`: a gerund is all there is ("Searching the code for callers."), which can be the answer to a question as well.
    """

    kinds: frozenset[Kind]
    verb: str
    object: str
    start: int
    end: int
    at_once: bool = False
    bare: bool = False


_BASES = alternatives(BASE)
_AHEAD = alternatives(AHEAD)
_GERUNDS = alternatives(GERUND)
_SOON_ADVERBS = (
    r"(?:(?:now|first|then|also|quickly|just|go ahead and|next|immediately|start by|begin by|try to|"
    r"need to|have to|use|call)[ ]){0,4}"
)
_SOON_EN = re.compile(
    rf"\b(?:[Ll]et me|[Ll]et['’]s|I['’]ll|I will|I['’]m going to|I am going to|I need to|I should|I have to|"
    rf"I['’]m about to|allow me to) "
    rf"{_SOON_ADVERBS}(?:(?P<base>{_AHEAD})|(?P<gerund>{_GERUNDS}))\b"
)
_WE_SOON = re.compile(
    rf"\b(?:[Ww]e (?:need to|should|must|have to|can now|will|['’]ll)|[Ww]e['’]ll|[Ss]o|[Nn]ow|[Tt]hen|[Mm]ust|"
    rf"[Nn]eed to|^[Tt]ime to) {_SOON_ADVERBS}(?P<base>{_AHEAD})\b"
)
"""How models speak to themselves: "We need to call search.", "So call get_order"."""
_SOON_ING = re.compile(
    rf"(?:\bI['’]m (?:now |currently )?|\bI am (?:now |currently )?|^[Nn]ow |^[Nn]ext up[:,]? |^[Nn]ext[:,]? |"
    rf"\b[Ss]tarting by |\bwhile I(?:['’]m| am) |"
    rf"^(?:ok(?:ay)?|sure(?: thing)?|right|alright|got it|great|understood|one (?:moment|sec(?:ond)?)|just a "
    rf"(?:moment|sec(?:ond)?)|hold on)\W{{1,4}}(?:now )?)(?P<gerund>{_GERUNDS})\b",
    re.IGNORECASE,
)
_ANY_SOON = re.compile(
    rf"\b(?:[Ll]et me|I['’]ll|I will|I['’]m going to|I am going to|I need to) {_SOON_ADVERBS}(?P<base>[a-z]{{3,}})\b|"
    r"(?:\bI['’]m (?:now )?|\bI am (?:now )?|^\W{0,4})(?P<ing>[A-Za-z]{4,}ing)\b(?=.*(?:\.\.\.|…|\bnow\b))"
)
_CALLING = re.compile(r"^[^\w\s]{0,3}\s*(?P<gerund>calling|invoking|executing) (?!it|this|that)", re.IGNORECASE)
_BARE_ING = re.compile(
    rf"^[^\w\s]{{0,3}}\s*(?P<gerund>{_GERUNDS})\b(?=.{{0,100}}(?:\.\.\.|…|:|\bnow\b|\bfirst\b))(?!.*\b(?:is|are|"
    rf"was|can|will|helps?|means|requires?|should|takes|lets|allows)\b)",
    re.IGNORECASE,
)
_ALONE_ING = re.compile(
    rf"^[^\w\s]{{0,3}}\s*(?P<gerund>{_GERUNDS}) (?:for |through |up |into |at |in )?"
    rf"(?:the|your|this|our|its) [\w`\ue001./ '’-]+\.?$",
    re.IGNORECASE,
)
"""A gerund that is the whole of a reply, with what it is done to."""
_WHILE = re.compile(rf"\bwhile I (?P<base>{_BASES})\b")
_FINITE = re.compile(
    r"\b(?:is|are|was|were|can|will|has|have|helps?|means|requires?|should|takes?|lets|allows|makes?)\b"
)
_CALL_NAME = re.compile(r"\b(?:call|use|invoke|calling|using|invoking|run|running|try)$", re.IGNORECASE)
_NOT_NOW = re.compile(
    r"\b(?:if|once|when|whenever|after you|as soon as|before (?:I|we|you)|until|unless|later|tomorrow|next "
    r"(?:time|week|month)|from now on|in (?:the )?future|"
    r"every|each time|please|let me know|you (?:can|could|may|want|would|should)|would|could|shall|happy to|"
    r"(?<!will )(?<!['’]ll )(?:send|give|tell|show) (?:me|us)|(?:^|then |and )(?:upload|paste|attach) (?:it|the|your)|"
    r"gladly|need(?:s)? (?:you|your)|"
    r"provide|confirm|here['’]?s|here (?:is|are)|as follows|follows|below|step by step|explain|summari[sz]e|"
    r"(?:will|[’']ll) wait|wait for you|"
    r"wenn|falls|sobald|bitte|möchtest|soll ich|könnten?|würden?|pourrais|podría|poderia|potrei|kein\w*|si tu|si vous|"
    r"souhaitez|veux-tu|si (?:me|quieres|deseas)|quieres|"
    r"por favor|cuando|se (?:quiser|você|vuoi|mi)|quando|per favore|"
    r"lass(?:t|en)?(?: sie)?(?: es)? (?:mich|uns) (?:\w+ ){0,3}?wissen|"
    r"sag(?:en sie)? mir|(?:fais|faites)-(?:le-)?moi savoir|dis-moi|dites-moi|hazme saber|avís[ae]me|me avise|fammi sapere|"
    r"mi faccia sapere)\b|如果|请|一旦|是否|需要您|之后|たら|ければ|場合|"
    r"もし|ください|でしょうか|ますか",
    re.IGNORECASE,
)
_SEPARABLE = {verb: kinds for verb, kinds in SOON[0].items() if " " in verb}
_HEADS = alternatives({verb.split(" ")[0] for verb in _SEPARABLE})
_PARTICLES = alternatives({verb.split(" ")[1] for verb in _SEPARABLE})
_DE = alternatives(SOON[0].keys() - _SEPARABLE.keys())
_FR, _ES, _PT, _IT, _ZH, _JA = (alternatives(table) for table in SOON[1:])
_SOON_FOREIGN = (
    re.compile(
        rf"\b(?:[Ii]ch (?:werde |muss )?(?:[\w.-]+ ){{0,2}}?|(?:[Jj]etzt|[Nn]un|[Dd]ann|[Zz]uerst|[Zz]unächst|"
        rf"[Aa]ls [Nn]ächstes) )(?P<verb>{_DE})\b|\b(?:[Ii]ch werde|[Ll]assen? (?:[Ss]ie )?mich|[Ii]ch muss|werde ich) "
        rf"[^!?;]{{0,120}}?\b(?P<verb2>{_DE})\b"
    ),
    re.compile(
        rf"\b(?:[Jj]e vais|[Ll]aissez-moi|[Ll]aisse-moi|[Jj]e dois) (?:maintenant |d['’]abord |tout de suite |"
        rf"vite )?(?P<verb>{_FR})\b|\b[Jj]e (?P<verb2>{_FR})\b|\b[Jj]e suis en train (?:de |d['’])(?P<verb3>{_FR})\b"
    ),
    re.compile(
        rf"\b(?:[Vv]oy a|[Dd]éj[ae]me|[Pp]erm[ií]ta?[mn]e|[Vv]amos a|[Dd]ebo|[Pp]rocedo a|[Ee]stoy) (?:ahora "
        rf")?(?P<verb>{_ES})\b|"
        rf"\b(?:[Aa]hora|[Ee]nseguida|[Yy]a|[Uu]n momento,|[Pp]rimero) (?:mismo )?(?:lo |la |te |le "
        rf")?(?P<verb2>{_ES})\b"
    ),
    re.compile(
        rf"\b(?:[Vv]ou|[Dd]eixe?-me|[Dd]eixe? eu|[Pp]reciso|[Ee]stou|[Ii]rei) (?:agora )?(?:a )?(?P<verb>{_PT})\b|"
        rf"\b(?:[Aa]gora|[Jj]á|[Uu]m momento,|[Pp]rimeiro) (?:mesmo )?(?:vou )?(?P<verb2>{_PT})\b"
    ),
    re.compile(
        rf"\b(?:[Vv]ado (?:subito )?a|[Ff]ammi|[Ll]asciami|[Mm]i lasci|[Dd]evo|[Ss]to|[Pp]rocedo a) (?:ora |"
        rf"subito )?(?P<verb>{_IT})\b|"
        rf"\b(?:[Oo]ra|[Aa]desso|[Ss]ubito|[Uu]n attimo,|[Pp]rima) (?P<verb2>{_IT})\b|\b(?P<verb3>{_IT}) "
        rf"(?:subito|ora|adesso)\b"
    ),
    re.compile(
        rf"(?:让我|我(?:们)?(?:来|将|会|要|去|先|现在|马上|这就|立刻|立即|就|正在|需要|得|再)|接下来我?|正在|"
        rf"现在(?:就|来|开始)|"
        rf"马上|稍等[，,]?我?|首先[，,]?我?)(?:先|来|去|立即|马上|就|开始|为您|帮您|帮你|给您|给你|使用|用|调用|"
        rf"重新|一下|现在|将|会|要|再|在)*"
        rf"(?:[把将给][^，,。！？]{{1,20}}?)?(?P<verb>{_ZH})"
    ),
    # A sentence about what a program does ends in the same verb: the speaker's own act has a sign of now or of courtesy.
    re.compile(
        rf"(?:ただ(?:いま|今)|これから|今から|今すぐ|すぐに?|まず|では|それでは|早速|さっそく|私[はが]|いま|次に|今、)"
        rf"(?:(?!関数|コマンド|コード|メソッド|[。！？]).){{0,60}}?(?P<verb>{_JA})(?:を)?(?:いた|致)?(?:します|"
        rf"ます|してみます|てみます|"
        rf"してきます|てきます|していきます|しています|て(?:い|まいり)ます|中です|しますね)|"
        rf"(?P<verb2>{_JA})(?:を)?(?:いたします|致します|してみます|てみます|してきます|てきます|"
        rf"させていただきます|してまいります|しますね|しますので)|"
        rf"お(?P<verb3>{_JA})(?:いた)?します"
    ),
)
_SOON_SIGNS = (
    Cues("ch ", "etzt ", "un ", "ann ", "uerst ", "unächst ", "ächstes "),
    Cues("Je ", "je ", "aisse"),
    Cues(
        "oy a ", "éj", "ermit", "ermít", "amos a ", "ebo ", "rocedo a ", "stoy ", "hora ", "nseguida ", "Ya ", "ya ",
        "momento, ", "rimero ",
    ),
    Cues("Vou ", "vou ", "eix", "reciso ", "stou ", "rei ", "gora ", "Já ", "já ", "momento, ", "rimeiro "),
    Cues(
        "ado ", "ammi ", "asciami ", "i lasci ", "evo ", "Sto ", "sto ", "rocedo a ", "Ora ", "ora ", " ora", "desso",
        "ubito", "attimo, ", "rima ",
    ),
)  # fmt: skip
"""What stands in all that the first of these find; the last two find what is not ASCII."""
_GERMAN_APART = re.compile(
    rf"\b(?:[Ii]ch (?P<head>{_HEADS})|(?P<head2>{_HEADS}|(?i:{_HEADS})) ich)\b[^!?;:.]{{0,120}}? "
    rf"(?P<particle>{_PARTICLES})\b"
)
"""A verb and the particle that closes its clause: "ich sehe jetzt im Kalender nach"."""
_PATIENCE = (
    r"(?:(?:please |just )?(?:one|a) (?:moment|sec(?:ond)?|minute)|just a (?:moment|sec|second|minute)|hold on|hang on|"
    r"please (?:wait|hold(?: on)?|stand by)|stand by|this (?:may|might|will|should) (?:only )?take|bear with me|"
    r"give me a "
    r"(?:moment|second|sec|minute)|"
    r"(?:einen?|kleinen) (?:kurzen )?(?:moment|augenblick)|moment|un instant|un moment|patientez|veuillez patienter|un "
    r"(?:momento|segundo)|um (?:momento|instante|segundo)|un (?:attimo|istante)|aguarde|espere|attenda|"
    r"请?稍(?:等|候)(?:片刻|一下)?|等一下|(?:少々|しばらく|少し)お待ち(?:ください|下さい|くださいませ)?)"
)
_PLEASE = r"(?:[ ,]*\b(?:please|bitte|s['’]il (?:vous|te) plaît|por favor|per favore|while I do (?:so|that|this))\b)?"
_FILLER = re.compile(rf"^(?:[^\w\s]*\s*)?{_PATIENCE}(?!\w).{{0,60}}$|^[^\w]*$", re.IGNORECASE)
_WAIT = re.compile(rf"(?<!\w){_PATIENCE}(?!\w){_PLEASE}|\bplease (?=\Z)", re.IGNORECASE)
_ACKNOWLEDGED = re.compile(
    r"^\W*(?:ok(?:ay)?|sure(?: thing)?|of course|certainly|absolutely|got it|understood|right away|on it|will do|great|"
    r"alright|yes|no problem|gerne?|natürlich|klar|verstanden|bien sûr|d['’]accord|claro|por supuesto|entendido|certo|"
    r"va bene|subito|好的?|明白了?|没问题|当然|はい|承知(?:しました|いたしました)|かしこまりました|了解(?:です|"
    r"しました)?)\W*$",
    re.IGNORECASE,
)
_AT_ONCE = re.compile(
    r"(?:[:：…]|\.\.\.)\W*$|\b(?:now|first|next|quickly|right away|jetzt|nun|zuerst|maintenant|d['’]abord|ahora|"
    r"primero|"
    r"agora|primeiro|ora|adesso|subito)\b",
    re.IGNORECASE,
)
_LONGEST_ALONE = 240
_LONGEST = 600
"""Characters of a sentence beyond which it is no announcement."""


_TAIL = 2_000
_OPENERS = Cues(
    "et me ", "et's ", "et’s ", "'ll ", "’ll ", "I will ", "e will ", "I should ", "e should ", "have to ",
    "need to ", "e must ", "e can now ", "going to ", "about to ", "llow me ", "while I ",
)  # fmt: skip
_GERUND_HEADS = frozenset(verb.split(" ")[0] for verb in GERUND)
_BEFORE_ING = ("i'm", "i’m", " am", "now", "currently", "next", "next up", "by")
_MAY_THINK = re.compile(rf"\b(?:so|now|then|must|need to|time to) (?:\w+ ){{0,4}}?(?:{_AHEAD})\b", re.IGNORECASE)
_SOON_WORDS = frozenset(part for table in SOON for verb in table for part in verb.split(" ")[:1])
_CJK = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")


def may_announce(text: str, *, thought: bool = False) -> bool:
    """Return True if the end of a text can hold an announcement, told cheaply."""
    tail = text[-_TAIL:].replace("\n", " \n")
    if _OPENERS.stand_in(tail) or _is_doing(tail) or (thought and _MAY_THINK.search(tail)):
        return True
    if not tail.isascii() and _CJK.search(tail):
        return True
    return has_word_at_end(text, tail, _SOON_WORDS)


def _is_doing(text: str) -> bool:
    """Return True if a gerund stands where an action goes on: at the beginning of a sentence or a clause, behind "I'm"."""
    end = text.find("ing")
    while end >= 0:
        start = end
        while start and (text[start - 1].isalnum() or text[start - 1] == "-"):
            start -= 1
        if text[start : end + 3].lower() in _GERUND_HEADS:
            before = text[max(start - 24, 0) : start]
            words = before.rstrip()
            if not words or not words[-1].isalnum() or "\n" in before[len(words) :]:
                return True
            if words.lower().endswith(_BEFORE_ING):
                return True
        end = text.find("ing", end + 3)
    return False


def announcement(prose: Prose, *, thought: bool = False) -> Announcement | None:
    """The action that a text ends on announcing, or None: it ends on something else, asks, offers or waits.

    `thought`: the text is reasoning, in which a model speaks to itself.
    """
    last = _last(prose, thought=thought)
    if last is None:
        return None
    found = _announced(prose, last, thought=thought)
    if found is None or last.bullet:
        return None
    return None if any(sentence.question for sentence in prose.sentences[-4:]) else found


def says_nothing(prose: Prose) -> bool:
    """Return True if a text only begs for patience or nods: "Sure. One moment please."."""
    return len(prose.text) < 200 and all(
        _ACKNOWLEDGED.match(_WAIT.sub(" ", sentence.masked))
        or (_FILLER.match(sentence.masked) and _announced(prose, sentence, thought=False) is None)
        for sentence in prose.sentences
    )


def announced_verb(prose: Prose, verbs: Iterable[str]) -> Announcement | None:
    """What the end of a text announces in one of some verbs that no table has."""
    last = prose.sentences[-1] if prose.sentences else None
    match = _ANY_SOON.search(last.masked) if last is not None and not (last.question or last.bullet) else None
    if last is None or match is None or _is_put_off(last):
        return None
    said = (match["base"] or match["ing"]).lower()
    for verb in verbs:
        if said in (verb, f"{verb.removesuffix('e')}ing", f"{verb}{verb[-1]}ing"):
            return _announce(prose, last, frozenset(), verb, match.end())
    return None


def is_alone(prose: Prose, found: Announcement) -> bool:
    """Return True if an announcement is all that a text says, nods and pleas for patience aside."""
    others = [sentence for sentence in prose.sentences if not found.start <= sentence.start < found.end]
    return len(prose.text) < _LONGEST_ALONE and all(
        _ACKNOWLEDGED.match(_WAIT.sub(" ", sentence.masked)) or _FILLER.match(sentence.masked) for sentence in others
    )


def _last(prose: Prose, *, thought: bool) -> Sentence | None:
    """The last sentence that is more than a plea for patience; None when the text ends on code, a quotation or a table."""
    for sentence in reversed(prose.sentences[-3:]):
        if sentence.question:
            return None
        tail = prose.text[sentence.end :].strip()
        if tail and not prose.masked[sentence.end :].strip("\ue002 \n\t\r."):
            return None  # a block follows: the product, not an announcement
        if not _FILLER.match(sentence.masked) or _announced(prose, sentence, thought=thought) is not None:
            return sentence
    return None


def _announced(prose: Prose, sentence: Sentence, *, thought: bool) -> Announcement | None:
    found = _found(prose, sentence, thought=thought) if len(sentence.masked) <= _LONGEST else None
    return None if found is None or _is_put_off(sentence) else found


def _is_put_off(sentence: Sentence) -> bool:
    """Return True if a sentence waits for something, or asks for it."""
    return _NOT_NOW.search(_WAIT.sub(" ", sentence.masked)) is not None


def _found(prose: Prose, sentence: Sentence, *, thought: bool) -> Announcement | None:
    line = sentence.masked
    opened, going = _OPENERS.stand_in(line), _may_be_going(line)
    patterns = (*_OPENED * opened, *_GOING * going, *[_WE_SOON] * thought)
    for pattern in patterns:
        if match := pattern.search(line):
            groups = match.groupdict()
            base, gerund = groups.get("base"), (groups.get("gerund") or "").lower()
            kinds = AHEAD[base] if base else GERUND[gerund]
            return _announce(prose, sentence, kinds, base or gerund, match.end())
    alone = _ALONE_ING.match(line) if going and len(prose.sentences) == 1 and not _FINITE.search(line) else None
    if alone:
        gerund = alone["gerund"].lower()
        return replace(_announce(prose, sentence, GERUND[gerund], gerund, alone.end("gerund")), bare=True)
    for apart in _GERMAN_APART.finditer(line) if "ch " in line or " ich" in line else ():
        verb = f"{(apart['head'] or apart['head2']).lower()} {apart['particle']}"
        if verb in _SEPARABLE:
            return _announce(prose, sentence, _SEPARABLE[verb], verb, 0)
    for number, (table, foreign) in enumerate(zip(SOON, _SOON_FOREIGN, strict=True)):
        signs = _SOON_SIGNS[number] if number < len(_SOON_SIGNS) else None
        if (signs.stand_in(line) if signs is not None else not line.isascii()) and (match := foreign.search(line)):
            verb = verb_of(match)
            return _announce(prose, sentence, table[verb], verb, 0)
    return None


_OPENED = (_SOON_EN, _WHILE)
_GOING = (_SOON_ING, _BARE_ING, _CALLING)


def _may_be_going(line: str) -> bool:
    """Whether a gerund may stand in a line, in any case. Letters that have no case of their own may stand for others."""
    return "ing" in line.lower() or not line.isascii()


def _announce(prose: Prose, sentence: Sentence, kinds: frozenset[Kind], verb: str, at: int) -> Announcement:
    shown = prose.text[sentence.start + at : sentence.end][:240]
    at_once = _AT_ONCE.search(sentence.masked) is not None
    return Announcement(kinds, verb, shown, sentence.start, sentence.end, at_once)


_CALLS_IT = re.compile(r"\b(?:call|use|invoke|run|query|try)(?:ing)?\b[^.;!?]{0,40}\Z", re.IGNORECASE)
_HEDGED = re.compile(
    r"\b(?:not|never|no|without|could|might|may|would|if|unless|already|but|instead|called|used|returned|results?|unable"
    r"|cannot|can['’]t|n['’]t)\b|n['’]t\b",
    re.IGNORECASE,
)


def decision(prose: Prose, names: Iterable[str]) -> tuple[Announcement, str] | None:
    """The declared tool that the last sentence of a thought decides to call by its name: `Next: look_up(plant="thyme")`."""
    last = prose.sentences[-1] if prose.sentences else None
    if last is None or last.question:
        return None
    said = prose.text[last.start : last.end]
    for name in names:
        found = re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", said) if name[:1] else None
        if found is None or _HEDGED.search(said[: found.start()]):
            continue
        if said[found.end() :].lstrip("`*")[:1] == "(" or _CALLS_IT.search(said[: found.start()]):
            return Announcement(frozenset(), "call", name, last.start, last.end, at_once=True), name
    return None
