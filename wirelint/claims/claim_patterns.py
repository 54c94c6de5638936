"""The forms in which finished actions are told, and what makes them unreal: the patterns that `claims` runs.

Flat alternatives with bounded gaps, over one sentence at a time.
"""

from __future__ import annotations

import re

from wirelint.claims.actions import BASE, GERUND, PARTICIPLE, PAST, alternatives
from wirelint.text.cues import Cues

LONGEST_OBJECT = 240
MOST_CLAIMS = 16
"""Claims of one sentence that are looked at: more are no prose."""
ADVERBS = (
    r"(?:(?:just|now|already|also|then|first|next|successfully|finally|carefully|thoroughly|quickly|briefly|"
    r"personally|again|"
    r"gone ahead and|went ahead and|in fact|actually|since|even|double-|re-)[ ]?,?[ ]?){0,4}"
)
PAST_VERB = alternatives({*PAST, *PARTICIPLE} - {"run"})
PARTICIPLE_VERB = alternatives(PARTICIPLE)
SAID = re.compile(
    rf"\b(?:(?P<have>I(?:['’]ve| have|['’]d)|[Ww]e(?:['’]ve| have)) |I ){ADVERBS}(?P<verb>(?:{PAST_VERB})|run)\b"
)
PAST_ADVERB = re.compile(r"\b(?:just|already|also|finally|previously)\b")
SUBJECT = re.compile(
    rf"\b(?:I(?:['’]ve| have)?|[Ww]e(?:['’]ve| have)) {ADVERBS}(?:\w+ed|found|wrote|ran|sent|read|made|took)\b"
)
CHAINED = re.compile(rf"(?:\band|,|\bthen|;)[ ]+(?:then |also |have )?{ADVERBS}(?P<verb>{PAST_VERB}|run)\b")
SPLIT = re.compile(
    rf"\bI(?:['’]ve| have)? {ADVERBS}(?P<verb>looked|pulled|turned|switched|set) (?P<between>(?:[\w'’-]+ "
    rf"){{1,4}}?)(?P<particle>up|on|off)\b"
)
TRIED = re.compile(
    rf"\bI(?:['’]ve| have)? (?:tried|attempted) (?:to (?P<base>{alternatives(BASE)})|"
    rf"(?P<gerund>{alternatives(GERUND)}))\b"
)
MANAGED = re.compile(
    rf"\bI(?:['’]ve| have)? (?:just |now )?(?:(?:was able|managed|have managed) to (?:successfully )?"
    rf"(?P<base>{alternatives(BASE)})|"
    r"(?P<look>had|taken|took) a (?:quick |close |closer |brief )?look (?:at|into|through)|"
    rf"(?:performed|conducted|did|done|made|ran|run|carried out|completed) (?:an?|another|the|several|some|multiple) "
    r"(?:[\w-]+ ){0,3}?(?P<search>search(?:es)?|look-?ups?|quer(?:y|ies)))\b"
)
"""Softer ways to say that something was done."""
TRANSACTED = re.compile(
    r"^[^\w]{0,4}(?:The|Your|A|This) (?:[\w-]+ ){0,2}?(?P<noun>refund|payment|transfer|order|booking|reservation|"
    r"appointment|"
    r"cancel[l]?ation|purchase)\b[^!?;]{0,80}? (?:has|have) (?:now |just |successfully |also )?been (?:successfully )?"
    r"(?:completed|processed|issued|made|placed|confirmed|submitted|initiated|executed|carried out)\b"
)
SWITCHED = re.compile(
    r"^[^\w]{0,4}(?:(?:OK|Okay|Done|Sure|All right)\W{1,3})?(?:The|Your|Both|All(?: the)?) (?:[\w-]+ ){1,4}?(?:is|are) "
    r"(?:(?:now )(?P<now>on|off|set to|locked|unlocked|open|closed|dimmed|muted|paused)|"
    r"(?P<set>on|off|set to|locked|unlocked|open|closed|dimmed|muted|paused)\b[^,;]{0,20} now)\b"
)
"""A state into which somebody must have brought a thing."""
AFTER = re.compile(
    rf"\b(?:[Aa]fter|[Uu]pon|[Hh]aving|[Ff]rom) {ADVERBS}(?P<verb>{alternatives({*GERUND, *PARTICIPLE})})\b"
    r"(?P<rest>.{0,200}?)(?:,| that)? ?\b(?:I (?:can|could|found|see|saw|confirm|noticed|conclude|don['’]t|did)|"
    r"it (?:appears|looks|seems)|"
    r"there (?:is|are|was|were)|no (?:results|matches|records))\b"
)
NOTHING = r"(?:0|zero|no|any|\d+)"
HITS = (
    r"(?:results?|matches|hits|documents?|articles?|records?|entries|files?|rows?|occurrences|items|messages|"
    r"emails|events|"
    r"tickets|orders|pages|passages)"
)
OUTCOME = re.compile(
    r"\b(?:[Mm]y|[Tt]he|[Tt]his|[Aa]) (?:[\w-]+ ){0,3}?(?P<verb>search|query|"
    r"lookup)\b[^.!?]{0,120}?\b(?:returned|found|yielded|came back|turned "
    r"up|produced|revealed|(?:did not|didn['’]t) (?:return|find|yield|turn up|produce))\b|^(?:[\w-]+ "
    r"){0,2}(?P<verb2>[Ss]earch|[Qq]uery|[Ll]ookup) "
    r"(?:is )?(?:complete|completed|finished|done)\b|\b[Bb]ased on my (?:[\w-]+ ){0,2}?(?P<verb3>search|lookup|query)\b|"
    rf"\bI(?:['’]ve| have)? {ADVERBS}(?P<verb4>found) (?:{NOTHING} |a total of )(?:[\w-]+ ){{0,2}}{HITS}\b|"
    rf"^(?:0|Zero|No) (?:[\w-]+ ){{0,2}}{HITS} (?:were |was )?(?P<verb5>found|returned)\b"
)
RESULTS = re.compile(
    r"\b(?:[Bb]ased on|[Aa]ccording to|[Ff]rom) (?:the|my) (?P<verb>search results|tool(?:['’]s)? (?:output|"
    r"results?|response)|query results?|"
    r"results of (?:the|my) (?:search|query|lookup))\b"
)
MISSED = re.compile(
    r"\bI (?:couldn['’]t|could not|was unable to|wasn['’]t able to|didn['’]t|did not) (?P<verb>find|locate) "
    r"(?:any|anything|a|the)\b"
)
PASSIVE = re.compile(
    rf"\b(?:has|have) {ADVERBS}been {ADVERBS}(?P<verb>{PARTICIPLE_VERB})\b|\b(?:was|were) successfully "
    rf"(?P<verb2>{PARTICIPLE_VERB})\b"
    rf"|\b(?:is|are) now (?P<verb3>{PARTICIPLE_VERB})\b|\b(?P<verb4>{PARTICIPLE_VERB}) successfully\b"
)
STANDS = re.compile(
    r"^[^\w]{0,4}(?:(?:OK|Okay|Done|Sure|All right|Great)\W{1,3})?(?:The|Your|Both|A|An) (?:[\w.-]+ ){1,8}?"
    r"(?:is|are) (?:all )?"
    r"(?P<verb>booked|reserved|scheduled|ordered|refunded|cancell?ed|rescheduled|deleted|removed|sent|turned on|turned off|"
    r"switched on|switched off|locked|unlocked)\b"
)
"""What stands as it was ordered: "your table is reserved"."""
WENT_THROUGH = re.compile(
    r"^[^\w]{0,4}(?:The|Your|All) (?:[\w.-]+ ){1,6}?(?:has |have )?(?P<verb>completed|finished|succeeded|ran|run)"
    r"(?: successfully|\W|$)"
)
FOUND = re.compile(
    r"\bI(?:['’]ve| have)? (?:just |also |already )?(?P<verb>found) "
    r"(?!it\b|this\b|that\b|them\b|him\b|her\b|myself\b|out\b|you\b|no\b)"
)
IN_DOING = re.compile(rf"\b(?:after|having|by|from) (?P<verb>{alternatives({*GERUND, *PARTICIPLE})})\b", re.IGNORECASE)
"""An act that is told by the way. Like things that were found, it is worth something only beside news of what was asked."""
BY_OTHERS = re.compile(
    r"\b(?:by (?:the|a|an|your|someone|another|default)|since (?:version|v?\d|\d{4})|in (?:version|v?\d|\d{4})|"
    r"that (?:has|have)|which (?:has|have)|"
    r"many times|for years|in the past|deprecated|usually|typically|often|always|never)\b"
)
TERSE = re.compile(
    rf"^(?:[^\w\s`\"']{{1,3}}\s*)?(?:\*\*)?(?:Successfully "
    rf")?(?P<verb>{alternatives(word.capitalize() for word in PARTICIPLE)}|Ran|Wrote)\b(?!-)"
)
MARKED = re.compile(r"^(?:[✅✔☑🎉👍✓]\ufe0f?|\*\*)")
UNREAL = re.compile(
    r"\b(?:if|would|could|should|might|may|suppose|imagine|assuming|unless|whether|pretend|hypothetically|as if|"
    r"as though|once|when|"
    r"until|before|whenever|believe|think|probably|perhaps|maybe|wish|for example|for instance|such as|e\.g|say|"
    r"said|says|"
    r"claims?|wrote|replied|like|after|every time|not|never)\b|n['’]t\b",
    re.IGNORECASE,
)
ELSEWHEN = re.compile(
    r"\b(?:last (?:year|month|summer|winter|spring|fall|autumn|semester|quarter)|years? ago|months? ago|decades? ago|"
    r"(?:back )?in (?:my|the) (?:early |late )?(?:(?:19|20)?\d0s|youth|childhood|twenties|college|school|first job|"
    r"(?:previous|last|old|former|first) (?:job|role|position|company|team|employer|project))|"
    r"(?:back )?in (?:19|20)\d\d|when I was|as a (?:child|kid|student|boy|girl|teenager)|once upon a time|"
    r"at (?:my|our) (?:previous|last|old|former|first) (?:job|company|role|employer|team|startup|workplace)|"
    r"(?:letztes|voriges|vergangenes) Jahr|vor (?:\w+ )?(?:Jahren|Monaten)|als ich (?:noch|Kind|Student)|"
    r"l['’]année dernière|il y a (?:\w+ )?(?:ans|mois)|quand j['’]étais|el año pasado|hace (?:\w+ )?(?:años|meses)|"
    r"cuando era|(?:o )?ano passado|há (?:\w+ )?(?:anos|meses)|quando eu era|l['’]anno scorso|"
    r"(?:anni|mesi) fa|quando ero)\b|去年|前年|[几\d]+年前|小时候|昔|子供の頃|年前に",
    re.IGNORECASE,
)
"""A time outside of any conversation: what was done then was not done for the user."""
EARLIER = re.compile(
    r"\b(?:earlier|previously|before|above|last time|a moment ago|already|in (?:the|my|our) (?:previous|first|"
    r"last)|as I|at the (?:start|beginning)"
    r"|vorhin|bereits|zuvor|plus tôt|déjà|auparavant|antes|anteriormente|ya)\b|之前|刚才|此前",
    re.IGNORECASE,
)
CLAUSE_END = re.compile(
    r"[;:](?=\s)|, (?:and|but|so|which|because|where|I)\b|\b(?:but|because|which|so that|I can|I could)\b|\band "
    r"(?:I|it|the|there|they|all|found|can|\w+ed)\b"
)
IDIOM = re.compile(
    r"(?:ran|run) (?:into|out|through|across|over|the numbers)\b|read (?:that|about|somewhere|between)\b|looked "
    r"(?:at (?:this|it|that) from|for (?:a|ways))\b|"
    r"pulled (?:together|off|ahead|back|myself)\b|"
    r"set (?:out|aside|forth)\b|made (?:sure|a (?:mistake|note|guess|list|point)|an? (?:error|assumption))\b|got "
    r"(?:it|you|that)\b|"
    r"tested (?:this|it|that)? ?(?:mentally|by hand)\b|(?:opened|started|begun|began) with\b|placed (?:emphasis|"
    r"the emphasis)\b",
    re.IGNORECASE,
)
HEDGED = re.compile(r"\b(?:probably|likely|may|might|could|would|should|must|will|if|typically|usually)\b")
NOTED = re.compile(
    rf"^[^\w]{{0,4}}(?:[\w'’.-]+ ){{1,4}}?(?P<verb>{PARTICIPLE_VERB})(?: successfully)?(?:[.!]|$| (?:to|at|for|"
    rf"in|on|as|with)\b|: | ?[✅✔☑✓👍🎉])"
)
"""A note without a finite verb: "Email sent to Bo."."""
FINITE = re.compile(
    r"\b(?:is|are|was|were|be|been|can|will|has|have|had|do|does|did|not|I|you|we|they|he|she|it|by|if|when|how|"
    r"to be)\b|n['’]t\b"
)
RELATIVE = re.compile(r"\b(?:[Tt]he|[Tt]his|[Aa]n?) (?:[\w-]+ ){1,3}(?:that |which )?$")
TESTS = re.compile(
    r"^[^\w]{0,4}(?:All|The|Every)(?: of the)?(?: \d+)?(?: \w+)? (?P<verb>tests?) (?:have |are |now |has "
    r")*(?:pass(?:ed|es|ing)?|succeeded|green)\b"
)
LETTER = re.compile(
    r"^(?:\*\*)?(?:Subject|Betreff|Objet|Asunto|主题) ?[:：]|^(?:Dear|Hi|Hello|Hey|Sehr geehrte\w*|Liebe[rs]?|Hallo|"
    r"Bonjour|Cher|Chère|Estimad[oa]s?|Hola)\b(?:[^\n.!?]|\b(?:Mrs?|Ms|Dr|Prof)\.){0,40},[ \t]*$|(?<=[\n:] )(?:Dear|"
    r"Sehr geehrte\w*) |"
    r"(?<=\n)(?:Dear|Sehr geehrte\w*) ",
    re.MULTILINE,
)
SIGNED = re.compile(
    r"\n[ \t]*(?:(?:kind |best |warm )?regards|best(?: wishes)?|cheers|thanks|thank you|sincerely|yours(?: \w+)?|"
    r"(?:viele|beste|liebe|freundliche) grüße|(?:mit )?(?:freundlichen|besten) grüßen|cordialement|bien à (?:vous|toi)|"
    r"(?:un )?saludos?|atentamente)[,.!]?[ \t]*(?:\n[^\n!?]{0,60}){0,3}\s*\Z",
    re.IGNORECASE,
)
"""How a letter closes."""
TEMPLATE = re.compile(
    r"\{\{ ?[\w.]+ ?\}\}|\[(?:Your |First |Last |Customer |Recipient(?:['’]s)? )?[Nn]ame\]|"
    r"\{(?:first_|last_|customer_)?name\}"
)
"""A field that is filled in later: its paragraph is a template, whoever will speak."""
LABELLED = re.compile(
    r"(?:^|(?<=[.!?\n] ))[*_#\- ]{0,6}(?:Title|Situation|Task|Action|Result|Summary|Description|Steps(?: to reproduce)?|"
    r"Expected|Actual|"
    r"Yesterday|Today|Blockers|Subject|Headline|Narrator|Agent|Customer|User|Assistant|Support|Me|You)\**: ?\**(?=\S)",
    re.MULTILINE,
)
"""Headings of the parts of a report, an account or a dialogue."""
ANSWERED = r"(?:returned|found|came back|turned up|yielded|gave (?:me )?(?:no|nothing|\d|an? )|reported)\b"
MADE_NAME = re.compile(r"\w[_-]\w|[a-z][A-Z]")
"""A name that no prose has: `search_docs`, `listEvents`."""
CONTAINER = re.compile(
    r"\s*(?:the|your|our|this) (?:[\w-]+ )?(?:repo(?:sitory)?|database|db|inbox|calendar|logs?|knowledge base|docs|"
    r"documentation|catalog(?:ue)?|wiki|tracker|crm|records|mailbox)\s*$"
)
LOOKED_INTO = frozenset(
    {"checked", "reviewed", "searched", "scanned", "went through", "looked at", "looked into", "queried"}
)
HYPHENATED = re.compile(r"[\w]-$")

DONE = re.compile(
    r"^[^\w]{0,4}(?:done|all done|all set|it['’]s done|task complete[d]?|completed|finished|erledigt|fertig|"
    r"c['’]est fait|listo|hecho|pronto|feito|fatto|完了(?:です|しました)|(?:已)?完成了?|搞定了?|办好了?)\b[.!。！ ]*",
    re.IGNORECASE,
)

I_THEN = re.compile(r"I(?:['’](?:ve|d)| have)? ([\w-]+)")
AFTER_I = frozenset({
    *(verb.split(" ")[0] for table in (PAST, PARTICIPLE) for verb in table),
    "just", "now", "already", "also", "then", "first", "next", "successfully", "finally", "carefully",
    "thoroughly", "quickly", "briefly", "personally", "again", "gone", "went", "in", "actually", "since",
    "even", "run", "tried", "attempted", "found", "have", "was", "managed", "had", "took",
})  # fmt: skip
"""Words that can follow "I" where something was done."""
LOOKED = Cues("earch", "uery", "ookup", "found", "returned", "esults", "tool")
CAME_OF_IT = Cues(
    "returned", "found", "yield", "came back", "turned up", "produce", "revealed", "return ", "find ",
    "turn up", "complete", "finished", "done", "ased on my", "ased on the", "ccording to", "rom the", "rom my",
)  # fmt: skip
CONCLUDED = Cues(
    "I can", "I could", "I found", "I see", "I saw", "I confirm", "I notic", "I conclude", "I don", "I did",
    "it appears", "it looks", "it seems", "there is", "there are", "there was", "there were", "no results",
    "no matches", "no records",
)  # fmt: skip
AFTER_SIGNS = Cues("fter ", "pon ", "aving ", "rom ")
PASSIVE_SIGNS = Cues("been", "successfully", "is now", "are now")
