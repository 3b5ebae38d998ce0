"""Recognise tokens with an issuer's mark, random strings, and placeholders. Used by `scrub`.

Every pattern takes time linear in the length of the text: bounded or unambiguous repetitions, no nesting.
"""

from __future__ import annotations

import re

from .secret_model import MIN_TOKEN_CHARS

# Tokens with an issuer's mark. They are searched only inside candidates (unbroken runs of token characters), so that a
# long list costs little.
_MARKED = (
    # model providers
    r"sk-[\w-]{20,}|gsk_\w{30,}|xai-\w{40,}|pplx-\w{30,}|r8_\w{30,}|nvapi-[\w-]{40,}|tvly-[\w-]{20,}",
    r"fc-[a-f0-9]{32}",
    r"jina_\w{40,}|(?:hf|api_org)_[A-Za-z0-9]{30,}|co-[\w-]{36,}|ms-[a-f0-9-]{36}|together_\w{30,}|fw_\w{20,}",
    r"pcsk_\w{30,}",
    # code hosts, registries, builds
    r"gh[opusr]_\w{30,}|github_pat_\w{30,}|gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas|imt|ffct|rtr|wt)-[\w.=-]{15,}",
    r"GR1348941[\w-]{20,}",
    r"npm_\w{30,}|pypi-[\w-]{50,}|rubygems_[a-f0-9]{40,}|oy2[a-z0-9]{43}|cio[A-Za-z0-9]{32}",
    r"dckr_[op]at_[\w-]{20,}|CLOJARS_\w{40,}",
    r"AT(?:BB|ATT3|CTT3|ST)[\w=+/-]{20,}|(?:AKCp|cmVmd)\w{50,}|bk(?:ua|at)_\w{30,}|CCIP(?:AT|RJ)_[\w-]{30,}",
    r"sq[apu]_[a-f0-9]{40}",
    r"sgp_(?:\w{1,20}_)?[a-f0-9]{40}|hawk\.\w{15,}\.\w{15,}|sntry[su]_[\w=+/-]{40,}|cct_\w{20,}|pnu_\w{30,}",
    r"pul-[a-f0-9]{40}",
    r"lin_(?:api|oauth)_\w{30,}|ntn_\w{40,}|PMA[KT]-[\w-]{30,}|rdme_\w{40,}|figd?_?[ou]?_[\w-]{30,}",
    r"fig[duo][rh]?_[\w-]{30,}|tfp_[\w-]{40,}",
    # clouds
    r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?![A-Z0-9a-z])|ABSK[\w=+/]{40,}",
    r"(?:IQoJb3JpZ2lu|FwoGZXIvYXdz)[\w=+/]{100,}",
    r"bedrock-api-key-[\w=+/-]{60,}",
    r"AIza[\w-]{30,}|ya29\.[\w.-]{20,}|GOCSPX-[\w-]{20,}|1//0[\w-]{25,}|LTAI\w{16,}|AKID\w{32,}|AQVN\w{35,}",
    r"YC[AN]\w{37,}",
    r"do[opr]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}(?:-\d)?|[\w.~-]{3}\dQ~[\w.~-]{31,34}(?![\w.~-])|\w{52,76}AZDO\w{4}",
    r"HRKU-[\w-]{30,}|v1\.0-[a-f0-9]{24}-[a-f0-9]{100,}",
    r"fo1_[\w-]{40,}|fm[12][ar]?_[\w=+/-]{80,}|ocid1\.[\w.-]{40,}|tskey-\w+-[\w-]{10,}|nfp_\w{30,}|rnd_\w{25,}",
    r"sb[ps]_[a-f0-9]{40}|sb_secret_[\w-]{20,}",
    r"hv[brs]\.[\w-]{20,}|[brs]\.(?=[A-Za-z]*\d[A-Za-z]*\d)[A-Za-z0-9]{24}(?!\w)|\w{14}\.atlasv1\.[\w-]{60,}",
    r"dp\.(?:pt|st|ct|sa|scim|audit|said)\.[\w.-]{30,}|ops_eyJ[\w-]{100,}",
    r"glsa_\w{30,}|glc_[\w=+/]{30,}|dt0[a-z]\d\d\.[A-Z0-9]{20,}\.[A-Z0-9]{60,}",
    r"NR(?:AA|AK|AL|BR|II|IQ|JS|RA)-[\w-]{20,}|[a-z0-9]{36}NRAL",
    r"px-(?:dep|api)-[a-f0-9-]{36}|phc_\w{30,}|phx_\w{30,}|ico-\w{30,}|tk-[a-z]{2}-[\w-]{40,}|CFPAT-[\w-]{40,}",
    r"EZ[AT]K\w{50,}|duffel_\w+_[\w-]{40,}",
    r"pscale_(?:tkn|pw|oauth)_[\w.-]{30,}|\d{3}-[a-z0-9]{32}\.apps|AGE-SECRET-KEY-1[A-Z0-9]{50,}",
    r"K[a-z]{2}_\w{40,}|pat\w{14}\.[a-f0-9]{64}",
    r"e2b_[a-f0-9]{40}|dtn_[a-f0-9]{64}|n8n_api_[\w.-]{30,}|lsv2_[ps][tk]_[a-f0-9]{32}_[a-f0-9]{10}|KGAT_[a-f0-9]{32}",
    r"sk_[a-f0-9]{48}|key_[a-f0-9]{64}|ctx7sk-[a-f0-9-]{36}|packagist_[a-z]{3}_[a-f0-9]{60,}"
    r"|API-[A-Z0-9]{25,}(?![\w-])",
    r"st\.[a-f0-9]{24}\.[a-f0-9]{32}\.[a-f0-9]{32}|s-s4t2(?:ud|af)-[a-f0-9]{64}",
    r"A3-[A-Z0-9]{6}(?:-[A-Z0-9]{11}|-[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
    # chat, mail, money
    r"xox[abceoprs]-(?:\d+-)*[\w-]{20,}|xoxd-[\w%+/=-]{20,}|xoxe\.xox[bp]-\d-[\w-]{20,}|xapp-\d-\w+-\d+-\w{20,}",
    r"SG\.[\w-]{16,}\.[\w-]{16,}|key-[a-z0-9]{32}",
    r"[a-f0-9]{32}-us\d{1,2}|[a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8}(?![\w-])"
    r"|x(?:keys|smtps)ib-[a-f0-9-]{60,}|(?:sk|pk|rk)_(?:live|test|prod)_\w{10,}",
    r"whsec_[\w=+/]{20,}|shp(?:at|ca|pa|ss|tka)_[a-fA-F0-9]{32}",
    r"(?:sandbox-)?sq0[a-z]{3}-[\w-]{20,}|EAAA[\w-]{55,}|EAA[A-Za-z0-9]{80,}|shippo_(?:live|test)_[a-f0-9]{40}",
    r"(?:live|test)_(?:pub_)?[a-f0-9]{30,}",
    r"mlsn\.[a-f0-9]{64}|pat-[a-z]{2}\d-[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"
    r"|\d/\d{14,17}(?:/\d{14,17})?:[a-f0-9]{32}",
    r"FLW(?:SECK|PUBK)[\w-]{20,}|(?:access|sandbox)-\w+-[a-f0-9-]{36}|\d{8,10}:A[\w-]{34}",
    r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}",
    r"(?:AC|SK)[a-f0-9]{32}|00D\w{12,15}!\S{60,}|aio_\w{25,}",
    r"sl\.(?:B|u\.)?[\w-]{60,}|fio-u-[\w-]{50,}|sgs?_\w{40,}|PVPN\w{30,}",
    # licence keys, recovery keys of an encrypted disk
    r"(?=[A-Z-]{0,28}\d)(?=[\d-]{0,28}[A-Z])[A-Z0-9]{5}(?:-[A-Z0-9]{5}){4}(?![\w-])|\d{6}(?:-\d{6}){7}(?![\w-])",
    r"eyJ[\w-]{8,}\.(?:eyJ|ey)?[\w-]{8,}(?:\.[\w-]*)?|eyJ[\w=+/-]{40,}|ZXlK[\w=+/-]{40,}",
    r"[ps]k\.eyJ[\w-]{20,}\.[\w-]{10,}|tk\.eyJ[\w.-]{30,}",
    r"sha256~[\w.=@+/-]{10,}|AAAA[\w%-]{5,10}:[\w-]{100,}|AAAAA{6,}[\w%]{60,}",
)
MARKED_TOKEN = re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(_MARKED) + ")")

CANDIDATE = re.compile(r"(?<![\w+/~.-])[\w~+/.-][\w+/=.~:!%@-]{11,}")
"""Matches a run of at least 12 token characters."""

# Random for each page or request, so that it gives no access later.
OF_ONE_PAGE = re.compile(
    r"(?:authenticity_?token|request_?verification_?token|[cx]srf[\w-]{0,30}|\bnonce|viewstate)"
    r"[\"']{0,2}(?:\s{1,4}(?:content|value))?\s{0,3}[=:]\s{0,3}[\"']?\Z",
    re.IGNORECASE,
)

# --- placeholders of secrets ---

_NAMED_PLACEHOLDER = re.compile(
    # At the beginning of a word: "Sunset-Rose-12" is none.
    r"(?:(?<![a-z])|(?<=api|key))(?:your|insert|replace|enter|put|add|change|fill|paste|set)"
    r"(?:[\W_]?(?:me|your|my|the|in|this|here|own|it|a|an)?[\W_]|(?:me|your|this|it)\Z)|\byour"
    r"|placeholder|redacted|dummy|todo|goes[\W_]?here|[_-]here\b|not[-_ ]?set|notused"
    r"|(?i:x{4,}|\*{3,}|\.{3,}|_{6,}|#{4,})",
    re.IGNORECASE,
)
_NEVER_SECRETS = frozenset(
    """
    password passwd passphrase pass pwd pw secret secrets token tokens key keys apikey api_key api-key credentials
    credential auth null none nil true false undefined void empty optional required string str text bytes bool int
    number any object char yes no on off is are was were be been has have had in on at of for from to and or not
    with without the a an it its this that these those will would should must can could may might only also just
    same new old invalid valid wrong missing expired expires refresh basic bearer digest example sample test testing
    foo bar baz input output hidden value type field name username user login env file files path import return
    default generator based auth-token session csrf access id_token access_token refresh_token bearertoken
    authorization header headers request response prompt change changes reset hash hashed hashing protected
    management manager storage store policy policies length count limit limits usage budget window format
    """.split()  # noqa: SIM905  a list of literals would take a page
)
_REFERENCE = re.compile(
    r"""
      :[A-Za-z_]\w*\W?\Z
    | \$\{?\w | \$[({] | \#\{ | \{\{? | %[\w({] | <[^>]*>?\s*\Z | <[a-zA-Z%$] | \[ | \( | @\w+[@.({] | `
    | (?:process\.|os\.|env\.|environ|getenv|ENV\[|System\.|config[.\[]|settings[.\[]|self\.|this\.|props\.
        |params[.\[]|req\.|request\.|args\.|secrets?\.|vault:|data\.|var\.|local\.|options\.|ctx\.|context\.
        |new\ |await\ |function\b|lambda\b|async\b)
    """,
    re.VERBOSE,
)
_CALL_OR_PATH = re.compile(
    r"[A-Za-z_][\w.]*\(|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+\Z|[A-Za-z_][\w.]*(?:->|::|\[)"
    r"|[a-z]+Password\Z"
)
_ONE_CHARACTER = re.compile(r"(.)\1*\Z", re.DOTALL)
_FILLED_X = re.compile(r"x{5,}", re.IGNORECASE)
_REPEATED = re.compile(r"((.)(?!\2).{1,3}?)\1{3,}\Z")
_COUNTED = re.compile(r"0?12345678|0{8,}|abcdefgh|a1b2c3|d4c3b2|z1y2x3|x9y8z7|z9y8x7", re.IGNORECASE)


def is_reference(value: str) -> bool:
    """Whether a value refers to a secret instead of being one: a variable, a template, a call."""
    return _REFERENCE.match(value.lstrip("\\")) is not None


def is_placeholder(value: str, quoted: bool) -> bool:
    """Whether a value is a placeholder of a secret, or refers to one."""
    bare = value.strip("'\"`,;\\")
    # Also the first of a form's rules for a field: "required|min:8".
    if not bare or bare.lower().partition("|")[0] in _NEVER_SECRETS or is_reference(bare):
        return True
    if _ONE_CHARACTER.match(bare) or _NAMED_PLACEHOLDER.search(bare):
        return True
    if quoted or _CALL_OR_PATH.match(bare) is None:
        return False
    # `config.token` is a reference; `hvb.JGb7zaCk…` has a random part.
    return not any(looks_random(part) for part in re.split(r"[^A-Za-z0-9]+", bare))


def is_filled(value: str) -> bool:
    """Whether the value is filled with x's or a count ("12345678"), as in documentation."""
    if "xxxxxxxx" in value.lower() or (_FILLED_X.search(value) and len(set(value.lower())) < 16):
        return True
    return len(value) >= 16 and (_COUNTED.search(value) is not None or _REPEATED.search(value) is not None)


def is_cut(text: str, start: int, end: int) -> bool:
    """Whether only the beginning of a key is shown ("ghp_abc..."); a whole key may stand before dots, too."""
    return end - start < MIN_TOKEN_CHARS and text.startswith(("…", "..."), end)


_STANDS_FOR = re.compile(r"YOUR|_HERE|PLACEHOLDER|DUMMY|REDACTED")
"""Only in capitals: a random string spells other words by chance."""


_DATE_PART = re.compile(r"(?:19|20)\d\d(?:[01]\d[0-3]\d)?")


def is_described(token: str) -> bool:
    """Whether only words, numbers and dates follow an issuer's prefix ("xoxb-my-bot-token").

    The name of a note may look like this: "sk-learn-notes-2026".
    """
    parts = [part for part in re.split(r"[-_.]", token) if len(part) > 3 and not _DATE_PART.fullmatch(part)]
    words = [part[:-1] if part[-1].isdigit() else part for part in parts]
    if len(words) > 1 and all(word.isalpha() and not _mixed_at_random(word) for word in words):
        return True
    return _STANDS_FOR.search(token) is not None


# --- random strings ---

_CLASS_RUN = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_VOWEL_GAP = re.compile(r"[bcdfghjklmnpqrstvwxz]{5,}")


def looks_random(text: str) -> bool:
    """Whether an alphanumeric string looks random. False for hexadecimal digits: hashes are no secrets.

    Runs of one class (lower, upper, digit) have a mean length of 1.7 in random strings over 62 characters, and of over
    3 in names made of words.
    """
    if len(text) < 16 or _is_hex(text):
        return False
    runs = _CLASS_RUN.findall(text)
    if not runs:
        return False
    characters = sum(map(len, runs))
    digits = sum(len(run) for run in runs if run[0].isdigit())
    has_upper = any(run[0].isupper() for run in runs)
    has_lower = any(run[0].islower() for run in runs)
    mean_run = characters / len(runs)
    if len(set(text)) < min(12, len(text) // 2):
        return False
    if has_upper and has_lower:
        return (digits >= 2 and mean_run <= 2.5) or (len(text) >= 24 and mean_run <= 1.95)
    return False


def looks_chosen(value: str) -> bool:
    """Whether a value looks like a password or a key: letters and digits, or mixed case."""
    if len(value) < 8:
        return False
    has_digit = any(character.isdigit() for character in value)
    has_letter = any(character.isalpha() for character in value)
    if has_digit and has_letter:
        return any(len(part) >= 8 and not part.isalpha() for part in re.split(r"[\s/\\.:]", value)) or len(value) >= 16
    return has_letter and len(value) >= 14 and _mixed_at_random(value)


def _mixed_at_random(value: str) -> bool:
    runs = _CLASS_RUN.findall(value)
    if not runs:
        return False
    if _VOWEL_GAP.search(value.lower()):
        return True
    mixed = any(run[0].isupper() for run in runs) and any(run[0].islower() for run in runs)
    return mixed and sum(map(len, runs)) / len(runs) <= 2.2


def _is_hex(text: str) -> bool:
    return not text.strip("0123456789abcdef") or not text.strip("0123456789ABCDEF")


_IDENTIFIER = re.compile(r"[A-Za-z]+[0-9]{0,2}(?:[_.-][A-Za-z]+[0-9]{0,2}|[_.-][0-9]{1,4})*\Z")


def is_identifier(value: str) -> bool:
    """Whether a value is words joined by _ - or ., perhaps numbered, or in camelCase."""
    if not _IDENTIFIER.match(value):
        return False
    return all(not looks_random(part) for part in re.split(r"[_.-]", value))
