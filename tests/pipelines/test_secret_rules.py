"""The table of rules and the project's own lines: every row finds what it is for, and ordinary lines stay."""

import random
import re
import string

import pytest

from memoryvault.bench.scrub import Line, own_lines, own_score
from memoryvault.pipelines.scrub import Policy, findings, scrub
from memoryvault.pipelines.secret_model import WEIGHTS_FILE, packaged
from memoryvault.pipelines.secret_rules import INTRODUCED, SHAPES, Rule
from memoryvault.pipelines.seed_phrases import WORDS_FILE


@pytest.mark.parametrize("rule", [*SHAPES, *INTRODUCED], ids=lambda rule: rule.example)
def test_each_rule_finds_what_it_is_for(rule: Rule) -> None:
    text, secrets = re.sub("[⟦⟧]", "", rule.example), re.findall("⟦(.+?)⟧", rule.example, re.DOTALL)
    for line in [text] if len(secrets) == 1 else text.splitlines():
        known = line if rule in SHAPES else line.lower()
        assert any(sign in known for sign in rule.signs)
        match = rule.pattern.search(line)
        assert match is not None
        start, end = rule.span(match)
        secret = secrets.pop(0)
        assert line[start:end] == secret
        assert rule.check(match, secret)
        assert secret.strip() not in scrub(line, Policy.SECRETS)
    assert not secrets


@pytest.mark.parametrize("half", ["A", "B"])
def test_secrets_in_the_projects_own_lines_are_redacted_and_ordinary_lines_stay(half: str) -> None:
    result = own_score(line for line in own_lines() if line.half == half)
    assert result.secrets > 100
    assert result.others > 200
    assert result.recall >= 0.95
    assert result.false_positive_rate <= 0.01


def test_a_line_is_clean_only_when_all_of_its_secrets_are_gone() -> None:
    assert not Line("password: hunter22, or zz", ("hunter22", "zz")).is_clean
    assert Line("password: hunter22", ("hunter22",)).is_clean


WORDS = WORDS_FILE.read_text("ascii").split()


@pytest.mark.parametrize("between", [" ", ", ", "\n", '", "', " 7. "])
@pytest.mark.parametrize("before", ["", "my wallet: ", "In the end of the long report it says this to all of us:\n"])
def test_a_wallet_phrase_is_redacted_anywhere_in_a_text(between: str, before: str) -> None:
    for number in range(50):
        phrase = between.join(random.Random(number).choices(WORDS, k=12))
        assert phrase not in scrub(f"{before}{phrase}\nand it works.", Policy.SECRETS)


def test_words_of_the_wallet_list_in_a_sentence_or_in_order_stay() -> None:
    for text in ("\n".join(WORDS), "please change the system that you use to move any file when the user is away"):
        assert findings(text, Policy.SECRETS) == ()


@pytest.mark.parametrize("prefix", ["brv_", "glorp-", "vxq_live_"])
def test_a_digest_after_letters_that_are_no_word_is_a_key(prefix: str) -> None:
    for number in range(50):
        key = prefix + "".join(random.Random(number).choices("0123456789abcdef", k=32))
        assert key.removeprefix(prefix) not in scrub(f"use {key} for it")
        assert "live" in prefix or findings(f"see {key}.png") == ()


@pytest.mark.parametrize(
    "line",
    [
        # A placeholder's word within another word, and leetspeak, are no sign of a placeholder or a name.
        "credentials are deploy:⟦Mango-Sunset-43⟧ on the build box",
        "dbpass ⟦K1ngfisher⟧",
        "pwd ⟦Cloud9nine⟧",
        # A quoted value or pair may hold blanks, whatever introduces it.
        "gpg --batch --passphrase '⟦plum jam⟧' -d x",
        "CREATE USER a IDENTIFIED BY '⟦plum jam⟧';",
        "curl --data-urlencode 'passwd=⟦plum jam⟧' https://acme.test",
        'docker run -e "MYSQL_ROOT_PASSWORD=⟦brown jumps⟧" mysql',
        "echo '⟦Toast 4 Tea⟧' | sudo -S systemctl restart nginx",
        # A word is the password where a user, an option or nothing else stands beside it.
        "login: jana, password: ⟦hagebutte⟧, tenant: fern",
        "svn co --username fox --password ⟦brownjumps⟧ url",
        'curl -H "X-User-Password: ⟦brownjumps⟧" https://acme.test',
        "the ansible vault password: ⟦nut-hatch-forest⟧",
        "ADMIN_PW=⟦hagebutte⟧",
        '{"auth":{"user":"jana","pass":"⟦hagebutte⟧"}}',
        "password => '⟦hagebutte⟧',",
        "密码是 ⟦Xiaolong88⟧",
        "数据库密码是⟦Kranich_8848!⟧",
        "密碼為⟦Xiaolong88⟧",
        "口令为⟦Xiaolong88⟧",
        "API密钥 = ⟦8f3c1a9be07d4c52a1f09e6b7d2c4f8a⟧",
        "clé d'API : ⟦8f3c1a9be07d4c52a1f09e6b7d2c4f8a⟧",
        "pay with ⟦pi_5NkWv8LqTzRw2Jh7Bx1Cd9Fa_secret_Gm3Pk6Ys0Xe4Uo8In2Vb5Ht7⟧",
        "サーバーのパスワードは ⟦Kranich#2020x⟧ です",
        "ключ API: ⟦8f3c1a9be07d4c52a1f09e6b7d2c4f8a⟧",
        "mdp: ⟦chouette_orange7⟧",
        "sunucu şifresi: ⟦Karadeniz.61⟧",
        "PIN of the sim: ⟦7391⟧",
        "el pin de la tarjeta es ⟦4417⟧",
        "the cvv for the card is ⟦812⟧",
        "seed phrase: legal winner thank year wave sausage worth useful legal winner ⟦thank yellow⟧",
        "das WLAN-Kennwort: ⟦Sommerregen-2023⟧",
        "ssh-keygen -N '⟦Fingerhut!2⟧' -f id",
        'DB_PASSWORD="⟦correct horse pass battery⟧"',
        '"password": "⟦passion fruit tart⟧"',
        "login: jana@acme.test pass: ⟦Feldhase⟧",
        "admin:⟦Knallerbse6⟧@10.0.0.8",
        "https://acme.test/invite?code=⟦asHk7Wg9FpZrJ7pimKDmB8⟧&u=7",
        "totp seed is ⟦G2HB546FNX56VY4D7Q2A====⟧",
        "curl -b 'session=⟦8f3c1a9be07d4c52a1f09e6b7d⟧' https://acme.test",
        "unlock the zip with ⟦OpenSesame_2022⟧",
        "creds: user1 ⟦hello-kitty-9⟧",
        # Codes in a list, numbers with a checksum in other forms.
        "recovery codes:\n⟦k7d2p-x9f4m⟧\n⟦r3t8w-bnqvz⟧\n⟦m5n6p-q7r8s⟧\n⟦a1b2c-d3e4f⟧\n⟦g5h6j-k7l8m⟧",
        "backup codes:\n1. ⟦06983858⟧\n2. ⟦91528192⟧\n3. ⟦62202565⟧\n4. ⟦03922847⟧\n5. ⟦07510972⟧",
        '"recovery_codes": ["⟦k7d2p-x9f4m⟧", "⟦r3t8w-bnqvz⟧"]',
        "iban: ⟦be68539007547034⟧",
        "⟦DE12-5001-0517-0648-4898-90⟧",
        "my visa: ⟦4111 1111 1111 1111⟧ 12/29 ⟦123⟧",
        'seed = "⟦comfort-grunt-grit-merge-clown-huge-glance-problem-seven-window-gift-club⟧"',
    ],
)
def test_a_secret_is_found_by_what_introduces_it_and_by_its_shape(line: str) -> None:
    scrubbed = str(scrub(re.sub("[⟦⟧]", "", line)))
    for secret in re.findall("⟦(.+?)⟧", line):
        assert secret not in scrubbed


@pytest.mark.parametrize(
    "line",
    [
        "public key: MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=",
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "redis-cli -h cache -p 6379 info memory", "utils_1.bigIntAndBufferInt64Check('readBigUInt64BE');",
        "price_1MoBy5LkdIwHu7ixZhnattbh is archived", "0x71C7656EC7ab88b098defB751B7401B5f6d8976F sent 1 ETH",
        "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "imei 356938035643809", "ALTER ROLE shop WITH PASSWORD :pw;",
        "DB_PASSWORD=changeme", "'password' => 'required|min:8|confirmed',",
        "connect with http://username:password@host:8080/", "csrfmiddlewaretoken: QJ8m2Xv7Yt5Rk1Wz9Lp3Nb6Hc4Gd0Fs",
        "connect the ESP32-S3 to Pin_17", "sign in with Google_Workspace2 or GitHub",
        "decrypt it with ChaCha20-Poly1305", "authenticate with OAuth2-PKCE instead of Basic-Auth1",
        "the passphrase is never written to disk anywhere", "the password is stored, then hashed",
        "wrong password: abort", "password: end-to-end encrypted",
        "my cache key 8f3c1a9be07d4c52a1f09e6b7d2c4f8a is stale", "the key is Ctrl+Shift+P",
        "use feature:Dark-Mode2 in the flag list", "the one-time password expires after 600 seconds",
        "https://docs.acme.test/calendar/how-to-subscribe-to-a-calendar-in-outlook", "=" * 80 + "admin",
        "export X_TOKEN=abx_9fK2mQx7...", "web-frontend-7d4b9c6f5d-x2x9k is not ready",
        "see cmd/entire/cli/strategy/common.go:119 and docs/plans/2026-02-01-auto-summarise-design.md",
        "github.com/acme/shop v0.0.0-20210921155107-089bfa567519",
        "container 3f2a9b1c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a died",
        "tests/hooks/test_stub.py::test_it_ends_in_time[claude-3]",
        "arn:aws:kms:us-east-1:003084325827:key/84a66985-f968-4bac-82c2-365518adf157",
        "https://files.test/v1/Qt8Q9C-_IjRouHVpD2Tuf3oHWGhDQ3kcjbAn",
    ],
)  # fmt: skip
def test_what_is_public_ordinary_or_cut_short_or_only_speaks_of_a_secret_stays(line: str) -> None:
    assert str(scrub(line, Policy.SECRETS)) == line


# Tokens that no rule knows: drawn by lot or not, by the trained model


SIGNS = string.ascii_letters + string.digits


def drawn(alphabet: str, length: int, seed: int) -> str:
    return "".join(random.Random(seed).choices(alphabet, k=length))


def token(form: str, seed: int) -> str:
    match form:
        case "dotted":
            return drawn(SIGNS, 8, seed) + "." + drawn(SIGNS + "_-", 32, seed)
        case "prefixed":
            return "qzk_" + drawn(string.hexdigits.lower(), 40, seed)
        case "tilde":
            return drawn(SIGNS + SIGNS + "~._-", 37, seed)
        case _:
            return drawn(string.ascii_lowercase + string.digits, 48, seed)


@pytest.mark.parametrize("form", ["dotted", "prefixed", "tilde", "one case"])
def test_most_tokens_of_unlisted_issuers_are_found(form: str) -> None:
    found = ["[REDACTED-" in scrub(f"the one for staging: \n{token(form, seed)}\nworks") for seed in range(40)]
    assert sum(found) >= 28


def test_the_whole_token_goes() -> None:
    secret = token("dotted", 3)
    assert scrub(f"try {secret} instead", Policy.SECRETS) == "try [REDACTED-API-KEY] instead"


@pytest.mark.parametrize("dots", ["...", "…"])
@pytest.mark.parametrize("name", ["API_KEY=", 'token = "'])
def test_a_whole_token_before_dots_is_removed(name: str, dots: str) -> None:
    token = "Zk3mQ9xT7vB2nL5wR8yH4dF6sJ1pC0aG"
    closing = '"' if name.endswith('"') else ""
    assert token[:20] not in scrub(f"{name}{token}{dots}{closing}", Policy.SECRETS)


@pytest.mark.slow
def test_training_gives_the_same_weights_again_and_finds_what_it_never_saw() -> None:
    pytest.importorskip("numpy")
    from memoryvault.bench.train_scrub import dump, share_found, train

    models = {form: train(form) for form in ("dotted", "all signs", "prefix, one case")}
    assert dump(train("dotted")) == dump(models["dotted"])
    assert dump(models["all signs"]) != dump(models["dotted"])
    assert dump(packaged()) == WEIGHTS_FILE.read_text("utf-8")
    for form, model in models.items():
        assert share_found(model, form) > 0.8
