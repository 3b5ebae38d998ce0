# ruff: noqa: E501 — one pattern a line reads better than one cut into pieces.
"""Cues: patterns by which a sentence shows a preference, a correction, an idea, a fix, a routine or a procedure.

A cue decides nothing; the classifier weighs it (`features.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .common_patterns import cue

PREFERENCE_CUES: Mapping[str, re.Pattern[str]] = {
    "prefer": cue(r"\b(?:i(?:'d)?|we|would)\s+(?:\w+\s+)?(?:prefer|rather)\b|\bprefer(?:ably)?\b"),
    "avoid": cue(
        r"\b(?:avoid|let's\ not|lets\ not|don'?t\ want|do\ not\ want|shouldn'?t|rather\ than|instead\ of|not\ be\ committed|no\ need\ for)\b"
    ),
    "negative_order": cue(r"^(?:\w+[,!]?\s+){0,2}(?:do\ not|don'?t|dont|never|no\ more|stop)\s+\w+"),
    "order_of_work": cue(
        r"\b(?:first|before\s+(?:we|you|that|committing|pushing)|separate\s+(?:pr|commit|branch)|(?:cut|new|create)\s+a\s+branch|pull\s+rebase|rebase\s+first|draft\s+pr)\b"
        r"|\b(?:ask|check\ with|talk|discuss|explain|tell|show|confirm|propose|consult)\b[^.?!]{0,40}\bbefore\b|\b(?:without|unless)\s+(?:i|me|my|asking|being)\b|\bno\ need\ to\ ask\b"
    ),
    "consistency": cue(
        r"\b(?:consisten\w+|convention\w*|style|standard\w*|best\ practice|existing\ (?:helper|code|function|pattern|test)|reuse|re-use|duplicat\w+|single\ source\ of\ truth|source\ of\ truth|same\ (?:as|way|style|pattern|thing|code|logic)|copy[\s-]?past\w+|identical|reusable|(?:pull|refactor|factor)\ (?:\w+\ ){0,3}(?:out|together)|the\ caller)\b"
    ),
    "readability": cue(
        r"\b(?:readab\w+|easier\ to|hard\ to\ (?:read|follow|understand)|grok|obvious|clear(?:er|ly)?|friendl\w+|simpl(?:er|ify|icity|e)|concise|short(?:er)?|verbose|literal)\b"
    ),
    "always_any": cue(
        r"\b(?:always|never|every|any|all|only|each|everywhere|anywhere|anything|nothing|whenever|at\ all\ times|by\ default)\b"
    ),
    "want": cue(
        r"\b(?:i(?:'d|\ would)?\s+(?:also\s+)?(?:like|want|need|love)|i\ do\ (?:want|need)|i'd\ go\ with|we\ (?:want|need))\b"
    ),
    "should": cue(
        r"\b(?:we|it|this|they|that|there|tests?|function|code)\s+should(?:n'?t)?\b|\bshould\ (?:we|be|not|all|this|it)\b|\bneeds?\ to\ be\b|\bhas\ to\b|\bmust\b"
    ),
    "lets": cue(r"\b(?:let'?s|lets)\s+(?:not|also|always|just|use|keep|do|have|call|make|move|drop|avoid)\b"),
    "tooling_request": cue(
        r"\b(?:can|could)\s+(?:we|you)\s+(?:not|use|change|make|keep|move|rename|rewrite|also|please)\b|\bany\ chance\b"
    ),
    "no_such_things": cue(
        r"(?:^|[,;.]\s)(?:please\ )?no\ (?:more\ )?(?!more\b|need|problem|worries|wait|idea|clue|longer|it\b|that\b|this\b|i\b|we\b|you\b|the\b|one\b|no\b|not\b|thanks|such\b)[\w-]+(?:\s[\w-]+)?s\b"
    ),
    "belongs": cue(
        r"\b(?:belongs?|goes|lives?|stays?)\ (?:in(?:to)?|to|through|under|behind|next\ to|at|via)\b|\b(?:must|may|should)(?:n'?t|\ not|\ never|\ only|\ always)\b"
    ),
    "you_should_be": cue(
        r"\byou\ (?:should|could|can)\ (?:really\ |always\ |also\ )?be\ (?:\w+ing|able\ to)\b|\bwe\ should\ be\ \w+ing\b|\bhow\ we\ do\b|\bhere\ we\b|\bwe'?re\ (?:using|following)\b|\b(?:our|the)\ (?:ci|team|readers?|designers?|convention)\b"
    ),
    "shouts": cue(r"\b(?-i:NEVER|ALWAYS|NOT|ONLY|JUST|MUST|DON'?T|DO\ NOT|EVERY|ANY)\b"),
    "takes_care": cue(
        r"\b(?:i'?d|would)\ (?:like|love)\ to\ (?:avoid|keep|start\ with|stay)\b|\bwant\ to\ (?:avoid|keep|break|brainstorm|discuss|stay|be\ able\ to)\b|\bmake\ sure\ (?:you|to|that\ you|not)\b|\bbefore\ (?:you\ )?(?:writ\w+|cod\w+|chang\w+|implement\w+|tak\w+|start\w+|mak\w+|touch\w+|mov\w+)\b|\binstead\ of\ (?:hard[\s-]?cod\w+|cop\w+|guess\w+)\b|\bhard[\s-]?cod\w+|\bseparation\ of\b|\bone\ (?:\w+\ )?at\ a\ time\b"
    ),
    "reason_given": cue(
        r"\b(?:because|since|so\ that|so\ we|so\ i|too\ (?:slow|long|verbose|intrusive|noisy|granular|complex)|consume|that'?ll\ make|for\ clarity|to\ save)\b"
    ),
    "really_way": cue(
        r"\b(?:really\ the\ way|should\ (?:we|this|all)|is\ there\ (?:any\ )?(?:other|another|a\ better)\ way|better\ way|are\ we\ \w+ing\ too)\b"
    ),
}

CORRECTION_CUES: Mapping[str, re.Pattern[str]] = {
    "opens_no": cue(
        r"^(?:no|nope|nah|not\ quite|wait|stop|hold\ on|hmm+|huh|argh+|actually|well\ actually|umm*|uhh*|technically|wrong|incorrect)\b"
    ),
    "not_right": cue(
        r"\b(?:not|isn'?t|wasn'?t|aren'?t|doesn'?t\ (?:seem|look))\s+(?:\w+\s+)?(?:right|correct|true|accurate|what\ i)\b|\b(?:wrong|incorrect|mistake|misread|misunderst\w+|made\ (?:it|this|that)\ up|make\ it\ up)\b"
    ),
    "i_said": cue(
        r"\bi\s+(?:said|told\ you|asked|did(?:n'?t|\ not)\s+(?:say|ask|mean|want)|meant|mean)\b|\bas\ i\ said\b|\bwhat\ i\ (?:said|asked|meant|want(?:ed)?)\b|\bi\ (?:only|just)\ (?:want|wanted|asked)\b|\byou\ (?:don'?t|do\ not)\ have\ to\b"
    ),
    "should_be": cue(
        r"\b(?:should\ (?:be|have\ been|have)|is\ supposed\ to|it'?s\ not|not\ a\b|it\ should|should\ also|shouldn'?t\ have)\b"
    ),
    "revert": cue(
        r"\b(?:revert|undo|put\ (?:it|that|this)\ back|roll\ back|go\ back|ignore\ (?:this|that)|drop|remove\ (?:this|that)|don'?t\ (?:check|commit|do|change|touch|add|remove))\b"
    ),
    "x_not_y": cue(r"\b(?:not|instead\ of|rather\ than)\s+[`\"']?[\w./:-]+[`\"']?\s*(?:[.,!)]|$)|,\s*not\s+\w+"),
    "still": cue(r"\b(?:still|again|already)\b"),
    "on_purpose": cue(
        r"\b(?:on\ purpose|intentional(?:ly)?|deliberate(?:ly)?|by\ design|have\ in\ mind|keep\ in\ mind|supposed\ to|was\ fine)\b"
    ),
    "why_did_you": cue(
        r"\bwhy\s+(?:did|are|would|do|have|is|was)\s+(?:you|it|this|we)\b|\bhave\ you\b|\bdid\ you\b|\bwhy\ (?:not|don'?t|didn'?t|haven'?t)\b|\bstop\ \w+ing\b"
    ),
    "you_did": cue(
        r"\byou\s+(?:\w+\s+)?(?:forgot|missed|removed|deleted|changed|broke|added|committed|skipped|didn'?t|should\ have|were\ supposed|mixed|flipped|dropped|lost|invented|keep|ignored|overwrote|got)\b|\byou(?:'re|\ are)\ (?:\w+\ )?(?:plotting|answering|describing|looking|reading|mixing|confus\w+|assuming|guessing)\b|\bif\ you\ had\b|\byou\ (?:need|have)\ to\b|\byou\ can(?:'?t|not)\b|\byou\ only\b"
    ),
    "pushes_back": cue(
        r"^but\b|\b(?:you\ said|are\ you\ sure|did\ you\ (?:not|even)|(?:didn'?t|don'?t|haven'?t)\ (?:you|we)|why\ did(?:n'?t|\ not|\ you\ not)|how\ is\ (?:it|this|that)\ (?:even\ )?possible|wtf|ffs|fuck\w*|what\ the\ \w+|stupid|crazy|seriously|nonsense|i\ mean)\b"
    ),
    "already_there": cue(
        r"\b(?:i|we|there|you|they|it)\ (?:have\ |has\ |is\ |was\ |'?ve\ )?already\b|\bthere\ is\ (?:already|one)\b|\balready\ (?:have|has|exists?|defined|handles?|does)\b"
    ),
    "told_otherwise": cue(
        r"\b(?:isn'?t|aren'?t|wasn'?t|weren'?t)\ (?:a|an|the|what|how)\b|\b(?:is|are|was|has|have|'s|'re)\ not\ (?:a|an|the|what|how|been|supposed)\b|\bnot\ how\b|\b(?:doesn'?t|does\ not|don'?t)\ exist\b|\b(?:is|are|was)\ (?:gone|deprecated|worthless|obsolete|dead\ code)\b|\bmakes?\ no\ sense\b|\bthe\ opposite\b"
    ),
}

IDEA_CUES: Mapping[str, re.Pattern[str]] = {
    "declares": cue(
        r"^(?:(?:new|another|one|random|crazy|wild|quick|other)\s+)?(?:idea|thought|feature\ (?:idea|request)|brainstorm(?:ing)?|proposal|wishlist|todo|follow[\s-]?up)\s*[:—–-]\s*\S|^(?:\w+\s){0,3}?(?:note\ to\ self|note\ for\ later|parking\ lot|future\ work|stretch\ goal|side\ project\ idea|something\ to\ consider|idea\ for)\b"
    ),
    "brainstorm": cue(
        r"\b(?:brainstorm\w*|roadmap|backlog|wish\s?list|investigate\ list|parking\ lot|nice\ to\ have|fast\ follow|put\ a\ pin|remind\ me\ to|nice\ addition|just\ a\ thought)\b"
    ),
    "follow_up": cue(r"\b(?:follow[\s-]?ups?)\b"),
    "later": cue(
        r"\b(?:(?:come\ back|look|get|return|revisit|discuss\w*|tackle|handle|do|build|add)\b[^.?!]{0,40}\b(?:later|another\ time|some\ other\ time|down\ the\ (?:road|line)|eventually)|later\ on|for\ later|for\ discussion|revisit)\b"
    ),
    "future": cue(
        r"\b(?:(?:in|for|a)\s+(?:the\s+|a\s+)?(?:near\s+)?future(?!\ test|\ prompt)|future\s+(?:enhancement|exercise|work|improvement|feature|version|release|iteration|pr|integration)s?|some\s?day|eventually|down\ the\ (?:road|line)|long(?:er)?[\s-]term|next\ (?:version|iteration|release))\b"
    ),
    "separate": cue(
        r"\b(?:separate|own|different|another|new)\s+(?:pr|pull\ request|feature|issue|ticket|project|package|plan|branch|plugin|tool|command|repo)\b|\b(?:standalone|small|separate|own)\ (?:library|tool|project|package)\b"
    ),
    "ticket": cue(
        r"\b(?:(?:create|add|open|log|make|file|raise)\s+(?:\w+\s+){0,3}(?:linear|jira|github|gh|follow[\s-]?up)?\s*(?:issue|ticket|task|story)s?)\b"
    ),
    "we_could": cue(
        r"\b(?:we|you|i|it|this|one|could)\s+(?:could|might)\s+(?:\w+\s+){0,2}(?:also|even|build|add|have|use|offer|make|split|extract|create|move|turn|support|cache|show|do)\b|\bcould\ also\b|\bcould\ be\ (?:its|a)\s+(?:own\s+)?\w+"
    ),
    "should_also": cue(
        r"\bwe\s+should\s+(?:also|probably|maybe|eventually|really|at\ some\ point)\b|\bmaybe\s+we\s+(?:should|could|can)\b"
    ),
    "what_if": cue(
        r"\b(?:what\ (?:if|about|do\ you\ think\ (?:about|of))|how\ (?:about|much\ effort|hard|difficult)|wondering\ (?:if|whether)|would\ it\ (?:make\ sense|be\ (?:possible|nice|cool|good|useful|worth))|wouldn'?t\ it|imagine|(?:been|keep|just|i'?m)\ (?:thinking|dreaming|toying|playing\ with)|i\ (?:dream|wish|wonder)|i\ ha(?:ve|d)\ (?:this|an)\ idea|wish\ (?:we|there)|potential\ for|in\ an\ ideal\ world|worth\ (?:exploring|trying|investigating|looking|a\ try|a\ shot|a\ paper))\b"
    ),
    "would_be_nice": cue(
        r"\b(?:(?:would|could|might)(?:\ also|\ really|\ even)?|(?:it|that)'d)\ be\ (?:\w+\ ){0,2}?(?:nice|cool|great|good|useful|helpful|awesome|handy|interesting|neat|sweet|fun|funny|lovely|amazing|dream|worth\w*)\b|\bi(?:\ would|'d)\ (?:love|like)\ to\ (?:see|have)\b|\bi'?d\ love\b|\bhow\ cool\b"
    ),
    "defer": cue(
        r"\b(?:leave\ (?:this|that|it)\ for|defer\w*|out\ of\ scope|not\ (?:in|part\ of)\ (?:scope|the\ (?:initial|current)\ plan)|park\ (?:this|that|it)|punt|postpone)\b"
    ),
    "at_some_point": cue(
        r"\b(?:at\ some\ point|one\ day|one\ of\ these\ days|when\ we\ (?:have|get)\ time|in\ a\ later|if\ we\ ever|another\ day|maybe\ later|but\ later|not\ urgent|low\ prio\w*|after\ launch|post[\s-]launch|long\ (?:run|shot)|in\ v\d|next\ (?:\w+\ )?(?:major|rev))\b"
    ),
}

FIX_CUES: Mapping[str, re.Pattern[str]] = {
    "root_cause": cue(
        r"\b(?:root\ cause|the\ (?:actual|real|underlying|fundamental|core)\ (?:bug|issue|problem|cause)|culprit)\b"
    ),
    "the_issue_is": cue(
        r"\b(?:the|this|that|your|amend)\s+(?:\w+\s+)?(?:issue|problem|bug|cause|reason|failure|error|crash|regression)\b[^.\n]{0,60}?(?:\b(?:is|was|were|are|comes\ from|came\ from|stems\ from|due\ to)\b|:)"
    ),
    "found": cue(
        r"\b(?:found\ (?:it|the\ (?:\w+\s+)?(?:bug|issue|problem|cause|culprit))|there\ it\ is|that\ explains|aha|now\ i\ see\ (?:the|what|why))\b"
    ),
    "caused_by": cue(
        r"\b(?:caused\ by|because\ of\ (?:a|the|an)|due\ to|was\ because|is\ because|happens\ because|fails\ because|failed\ because|the\ reason\ (?:is|was)|this\ is\ because|happening\ because)\b"
    ),
    "the_fix": cue(
        r"\b(?:the|a|this|my|correct|proper|right|clean)\s+(?:\w+\s+){0,2}?(?:fix|solution|workaround)\s*(?:\b(?:is|was|works|worked|resolved|should\ be|would\ be|for)\b|:)"
    ),
    "fixed_by": cue(
        r"\b(?:fixed|solved|resolved|worked\ around|addressed)\s+(?:\w+\s+){0,3}?(?:by|with|via|in)\b|\b(?:fixes|fixed|resolves|resolved)\s+(?:the|this|a|an|it)\b"
    ),
    "workaround": cue(r"\bwork[\s-]?around\b"),
    "mechanism": cue(
        r"\b(?:doesn'?t|does\ not|didn'?t|isn'?t|not)\s+(?:\w+\s+)?(?:respect|honou?r|propagate|set|read|handle|resolve|include|inherit|tracked|detect|account|see|exist|reset|clear|persist|update|call|check|work)\w*\b"
    ),
    "breaks": cue(
        r"\b(?:overwrit\w+|clobber\w*|leak\w*|panic\w*|crash\w*|dereference|nil\ pointer|race\ condition|deadlock|undefined|out\ of\ (?:range|bounds)|never\ (?:reached|called|set|closed)|unreachable|silently|instead\ of|mismatch|stale|corrupt\w*|infinite\ loop|off[\s-]by[\s-]one|symlink|timeout|times\ out|too\ early|too\ late|before\ (?:the|it)|premature\w*|wrong\ (?:path|file|branch|directory|order|type|value))\b"
    ),
    "fails": cue(r"\b(?:fails?|failed|failing|breaks?|broken|broke|error(?:ed|s)?|throws?|refuses)\b"),
    "so_that": cue(r"\b(?:so|which\ means|meaning|therefore|as\ a\ result|causing|leads\ to|leading\ to)\b"),
    "let_me_fix": cue(
        r"\b(?:let\ me\ fix|i'?ll\ fix|need\ to\ (?:fix|use|change|update)|should\ i\ (?:implement|fix)|the\ fix)\b"
    ),
    "ticks": cue(r"`[^`]+`"),
    "before_after": cue(r"\b(?:before|previously|used\ to|old\ code)\b[^.\n]{0,80}\b(?:after|now|new\ code)\b"),
}

ROUTINE_CUES: Mapping[str, re.Pattern[str]] = {
    "let_me": cue(
        r"^(?:(?:ok|okay|now|good|great|perfect|excellent)[,.!]?\s+)?(?:now\s+)?(?:let\ me|i'?ll|i\ will|i\ need\ to|i'?m\ going\ to|next|now)\b"
    ),
    "all_pass": cue(
        r"\b(?:all\ (?:\d+\s+)?(?:\w+\s+)?(?:tests?\s+)?pass|tests?\ pass|lint\ (?:is\ )?clean|build\ succeeds|everything\ passes)\b"
    ),
    "summary": cue(
        r"\b(?:summary\ of\ (?:the\ )?changes|here'?s\ (?:a\ summary|what\ (?:changed|i\ did))|all\ done|done\.|changes\ made|successfully)\b"
    ),
    "question": cue(r"\?\s*$"),
    "acknowledge": cue(
        r"^(?:yes|yep|yeah|yup|ok|okay|sure|great|good|nice|cool|perfect|thanks|thank\ you|lgtm|sounds\ good|looks\ good|go\ ahead|continue|proceed|do\ it|commit|push)\b"
    ),
    "ask_info": cue(
        r"^(?:what|why|how|where|when|which|who|is|are|does|do|did|can\ you\ (?:explain|tell|show|check|look|read|review|see|find|confirm))\b"
    ),
    "describes": cue(
        r"\b(?:it|this|that|they|which|users?|test|was|were|is|are|has|have|had|the\ \w+)\s+(?:\w+\s+){0,2}(?:always|never)\s+\w+"
    ),
    "orders_task": cue(
        r"^(?:(?:please|can\ you|could\ you|now|then|also|ok|okay|yes|and|let'?s|lets),?\s+){0,3}(?:add|fix|create|make|change|remove|delete|rename|show|update|run|plot|write|implement|build|generate|install|open|set\ ?up|move|convert|translate|upgrade|start|continue|finish|review|look|check|find|search|explain|list|give|compare|load|train|deploy|scale|port|read|summari[sz]e|try|do|go|keep\ going|proceed|launch|modify|disable|enable|help)\b"
    ),
    "did_it_myself": cue(
        r"^(?:(?:ok|okay|yes|great|nice|alright|done|so|now),?\s+)*(?:i(?:'ve|\ have)?|ive|we(?:'ve|\ have)?)\s+(?:just\s+|now\s+|also\s+|manually\s+)?(?:added|re-?added|created|deleted|removed|moved|ran|did|made|fixed|pushed|merged|re-?started|installed|uploaded|resized|renamed|updated|changed|cleared|copied|set|stopped|opened|put|got|tried|rebooted|restored|committed|reverted|downloaded|needed)\b"
    ),
    "reports_error": cue(
        r"\b(?:(?:getting|got|get|see|seeing)\ (?:a|an|this|the|these|error\w*|nan|\d+)|crash(?:es|ed)?|(?:is|are)\ (?:red|stuck|blank|missing|slow|broken|down|failing|empty)|(?:doesn'?t|does\ not|not)\ work(?:ing)?|fails|failed|nothing\ happens|stack\s?trace|still\ (?:not|isn'?t|doesn'?t|see|the\ same|crash\w*|wrong|off)|shows?\ (?:me\ )?nothing|(?:don'?t|can'?t|do\ not|can\ not|cannot)\ see)\b"
    ),
    "git_order": cue(r"\b(?:commit|push|pr\ description|commit\ message|open\ (?:a\ )?(?:draft\ )?pr|merge|rebase)\b"),
}

WORKFLOW_CUES: Mapping[str, re.Pattern[str]] = {
    "ordered": cue(
        r"\b(?:first|start\ (?:by|with))\b[^.\n]{3,120}\b(?:then|after\ that|afterwards|next|finally|before)\b"
    ),
    "arrow": cue(r"\S\s*(?:->|→|=>)\s*\S+[^.\n]*(?:->|→|=>)\s*\S"),
    "whenever_steps": cue(
        r"\b(?:before|after|when(?:ever)?|every\ time|each\ time|once|as\ soon\ as)\b[^.\n]{3,80}[,:]\s*(?:please\s+)?(?:always\s+)?(?:run|commit|push|update|check|open|create|write|rebase|do|execute|build|test|lint|format)\b[^.\n]{2,80}\b(?:then|and|followed\ by)\b"
    ),
    "process": cue(
        r"\b(?:our|my|the|your)\s+(?:release|deploy(?:ment)?|review|usual|normal|standard|dev|development|testing|git|branching|pr)?\s*(?:process|workflow|procedure|routine|flow|checklist|steps)\s+(?:is|are|goes|should|:)"
    ),
}

ALL_CUES: Mapping[str, Mapping[str, re.Pattern[str]]] = {
    "preference": PREFERENCE_CUES,
    "correction": CORRECTION_CUES,
    "idea": IDEA_CUES,
    "fix": FIX_CUES,
    "routine": ROUTINE_CUES,
    "workflow": WORKFLOW_CUES,
}


CUES: Mapping[str, re.Pattern[str]] = {
    f"{family}:{name}": pattern for family, patterns in ALL_CUES.items() for name, pattern in patterns.items()
}
"""All cues by full name: "idea:later"."""
