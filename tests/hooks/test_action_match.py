"""Which commands a command line has, and which calls a rule speaks of."""

from collections.abc import Callable
from functools import partial

import pytest

from memoryvault.bench.actions import lookup_of, measure_calls
from memoryvault.hooks.action_match import match_call, matches
from memoryvault.pipelines.triggers import Triggers, compile_triggers
from memoryvault.tests.support.growth import assert_linear


@pytest.mark.parametrize("half", ["dev", "held"])
def test_of_ten_calls_that_a_rule_speaks_of_eight_get_it_and_of_ten_others_at_most_one_gets_anything(half: str) -> None:
    spoken, told, others, wrong, _ = measure_calls(half)
    assert told >= 0.8 * spoken
    assert wrong <= 0.1 * others


@pytest.mark.parametrize(
    "unit",
    [
        *("git ", "sudo ", "git push;", "docker exec sudo ", "cd a;", "a", "cat <<A\n", "cat <<A{}\n"),
        *("sh -c 'sh' ", "-exec git ", "'git push' ", "&& curl a ", "| python -m python "),
    ],
)
def test_a_long_line_costs_no_more_than_its_length(unit: str) -> None:
    """A hook that takes too long refuses nothing."""
    lookup = lookup_of([Triggers(commands=("git pull", "git x -a", "curl a"), paths=("a/b",))] * 9)

    def match(length: int) -> Callable[[], object]:
        line = "ssh " + "".join(unit.format(number) for number in range(length // len(unit)))
        return partial(match_call, lookup, "Bash", {"command": line})

    assert_linear(match, 40_000)


@pytest.mark.parametrize(
    ("trigger", "command", "found"),
    [
        ("git push", "FOO=1 sudo git push --tags", True),
        ("git push", "a 'b; c' # d\ngit push", True),
        ("git push", "a # b; git push", False),
        ("git push", "a `git push`", True),
        ("git push", "git \\\n  push", True),
        ("git push", "a 'git push", False),
        ("git push", 'a "b \\" c"\ngit push', True),
        ("git push --force", "git push origin x", False),
        ("rm -rf", "rm -f -r x", True),
        ("rm -rf", "rm -f x", False),
        ("prisma", "npx prisma@5 migrate dev", True),
        ("black", "python -m black .", True),
        # The program that runs another one is a command, too.
        ("sudo pip", "sudo -H pip3 install x", True),
        ("sudo pip", "pip install x", False),
        ("psql", "sudo -u postgres psql -l", True),
        # Where it runs does not matter: another machine, a container, an environment, a shell.
        ("git push", "ssh web1 'cd app && git push'", True),
        ("git push", "ssh -p 22 web1 git push", True),
        ("psql", "kubectl exec -n x pod/db -- psql -l", True),
        ("psql", "docker compose -f a.yml exec db psql", True),
        ("pytest", "uv run pytest -q", True),
        ("python", "uv run python x.py", False),
        ("rm", "find . -name '*.o' -exec rm {} +", True),
        ("rm", "find . -name rm", False),
        ("git push", "bash -lc 'git push'", True),
        ("git push", "eval 'git push'", True),
        ("git push", "sudo bash -s <<EOF\ngit push\nEOF", True),
        ("git push", "docker exec -i web sh <<EOF\ngit push\nEOF", True),
        ("git push", "cat <<EOF | bash\ngit push\nEOF", True),
        ("git push", "echo $((1 << 2))\ngit push", True),
        ("git push", "cat <<< $(git push)", True),
        ("git push", "cat <<EOF $(git push)\nx\nEOF", True),
        ("git push", "cat <<< x\ngit push\nx", True),
        ("git push", "cat << 'END OF IT' > notes.txt\ngit push\nEND OF IT", False),
        ("git push", "cat > notes.txt <<\\EOF\ngit push\nEOF", False),
        # Text that is only written is no command.
        ("git push", "cat > notes.txt <<'EOF'\ngit push\nEOF\nls", False),
        ("git push", "cat > notes.txt <<-EOF\n\tgit push\n\tEOF\ngit push", True),
        ("git push", "cat <<< 'git push'", False),
        ("git push", "git commit -m \"$(cat <<'EOF'\ngit push\nEOF\n)\"", False),
        # Words of a program after its options.
        ("git push", "git commit -m 'git push'", False),
        ("git push", "git -C web -c a=b push", True),
        ("git push", "git -C web stash push", False),
        ("npm audit fix --force", "npm audit --force fix", True),
        ("npm test", "npm --prefix web test", True),
        ("go test ./...", "go test -race ./...", True),
        ("go test ./...", "go test ./pkg", False),
        ("git push", "if git diff --quiet; then git push; fi", True),
        ("python", "python3.11 x.py", True),
    ],
)
def test_a_command_is_known_by_its_words(trigger: str, command: str, found: bool) -> None:
    lookup = lookup_of([Triggers(commands=(trigger,))])
    assert bool(match_call(lookup, "Bash", {"command": command})) is found


@pytest.mark.parametrize(
    ("trigger", "tool", "value", "found"),
    [
        ("vendor/", "Edit", "/p/vendor/a/b.go", True),
        ("vendor/", "Edit", "/p/vendors/a.go", False),
        ("vendor/", "Edit", "/p/src/vendor", False),
        ("vendor/", "Bash", "rm -r vendor", True),
        ("src/generated", "Edit", "/p/generated/a.py", False),
        ("src/generated", "Edit", "/p/src/generated/a.py", True),
        ("*.snap", "Write", "a/b.test.js.snap", True),
        ("config/*.toml", "Edit", "/p/config/app.toml", True),
        ("config/*.toml", "Edit", "/p/Cargo.toml", False),
        ("locales/**/*.po", "Edit", "/p/locales/de/x.po", True),
        (".env", "Bash", "echo A=1 >> .env", True),
        (".env", "Bash", "ls .env", False),
        (".env", "Bash", "sudo cat .env", False),
        ("README.md", "Bash", "tee README.md", True),
        ("out.log", "Bash", "make 2>&1 > out.log < in.txt", True),
        ("all", "Bash", "ls &> all", True),
        ("vendor/", "Bash", "ls vendor && rm -r a", False),
        (".env", "Bash", "cat > .env <<EOF\nA=1\nEOF", True),
    ],
)
def test_a_path_is_known_by_its_name_and_folders(trigger: str, tool: str, value: str, found: bool) -> None:
    lookup = lookup_of([Triggers(paths=(trigger,))])
    arguments = {"command": value} if tool == "Bash" else {"file_path": value}
    assert bool(match_call(lookup, tool, arguments)) is found


@pytest.mark.parametrize(
    ("name", "pattern", "is_match"),
    [("a.test.js", "*.test.*", True), ("a.js", "*.test.*", False), ("aba", "ab*ba", False), ("x", "*", True)],
)
def test_a_pattern_has_stars_alone(name: str, pattern: str, is_match: bool) -> None:
    assert matches(name, pattern) is is_match


@pytest.mark.parametrize(
    ("rule", "has", "has_not"),
    [
        ("Use pnpm, not npm.", {"npm"}, {"pnpm"}),
        ("Use uv for Python.", {"pip", "poetry"}, {"uv"}),
        ("Ask before adding a dependency.", {"npm install", "pip install", "cargo add"}, set()),
        ("Migrations belong into db/migrations.", {"db/migrations", "migrations/"}, set()),
        ("Run `make lint` before every commit.", {"git commit"}, set()),
        ("Never use rm -rf outside of build/.", {"rm -rf"}, {"build/"}),
        ("Use axios and/or fetch.", {"axios"}, {"and/or"}),
        # The name of a file is no word of the sentence.
        ("Ask me before you change package.json.", {"package.json"}, {"npm install", "requirements*.txt"}),
        # A program that is called is no kind of file.
        ("Don't call python directly in scripts.", {"python"}, {"*.py"}),
        # A command has several words.
        ("docker compose, not docker-compose.", {"docker-compose"}, {"docker compose"}),
        ("Never run npm audit fix --force.", {"npm audit fix --force"}, {"npm audit"}),
        ("Never use sudo npm.", {"sudo npm"}, {"sudo", "npm"}),
        # An option that a ban names is part of what it forbids.
        ("Never commit with --no-verify.", {"git commit --no-verify"}, {"git commit"}),
        ("Always commit with --signoff.", {"git commit"}, {"git commit --signoff"}),
        ("yarn only in this repo.", {"npm", "pnpm"}, {"yarn"}),
        # What is wanted, in a sentence of its own or as what the old was left for.
        ("not npm. pnpm here", {"npm", "npx"}, {"pnpm", "yarn"}),
        ("pip is gone. uv run for everything", {"pip"}, {"uv run"}),
        ("moved from pandas to polars", {"pandas"}, {"polars"}),
        ("Not QEMU. Tests run on native_sim.", {"qemu"}, {"native_sim"}),
        ("No npm. `terraform apply` is mine to run.", {"npm", "terraform apply"}, set()),
        # A verb whose object is named.
        ("Never delete dist/app.js.", {"dist/app.js"}, {"rm"}),
        ("Never delete files without asking.", {"rm"}, set()),
        # A verb done with one program.
        ("Ask before you deploy with fly.", {"fly deploy"}, {"fly", "vercel"}),
        ("Don't run the whole test suite.", set(), {"tests/", "*.test.*"}),
        ("Take a pg_dump before you drop a table.", {"drop table"}, {"psql"}),
        ("Never force-push, run terraform apply or drop tables.", {"git push -f", "drop table"}, set()),
        (
            "We never commit directly to main, make a branch and a PR.",
            {"git commit"},
            {"git checkout -b", "gh pr create"},
        ),
        # A negation without its apostrophe.
        ("we dont use npm here, we use pnpm", {"npm"}, {"pnpm", "yarn"}),
        # A call with what is wanted obeys.
        ("Tests run on native_sim, not on QEMU.", {"qemu"}, {"native_sim"}),
        ("NEVER PUSH TO MAIN", {"git push"}, {"push"}),
        # What is allowed in one case is forbidden in another.
        ("You may run terraform apply in dev, but never in prod.", {"terraform apply"}, {"tofu"}),
        # The place where things are to be put, beside another one.
        ("Keep scripts out of src/, put them into tools/.", {"src/"}, {"tools/"}),
        ("use logger.info, not console.log", {"console.log"}, {"logger.info"}),
        # A folder without its slash.
        ("third_party is vendored, dont touch it ever", {"third_party/"}, set()),
        ("Don't edit src.", {"src/"}, set()),
        ("Never log user_id.", {"user_id"}, {"user_id/"}),
        # A name with the signs of code.
        ("Don't call collect() on full tables. take() is fine.", {"collect("}, {"collect", "take("}),
        ("no Math.random, no fmt.Println", {"math.random", "fmt.println"}, set()),
        ("never verify=False, __all__ or --no-deps", {"verify=false", "__all__", "--no-deps"}, {"all"}),
        ("never .Result, .Wait() or :latest", {".result", ".wait(", ":latest"}, set()),
        ("No `SELECT *`, name the columns.", {"select *"}, {"select"}),
        ("Comma(s) never end a line.", set(), {"comma(", "comma"}),
        # What heads a rule says where it holds.
        ("dbt: no hardcoded schema in ref_tables", {"ref_tables"}, {"dbt"}),
        ("terraform: never apply", {"terraform apply"}, {"terraform"}),
        ("docker: rootless only", {"docker"}, set()),
        # All names that one ban lists, and a language by its files.
        ("no setState, no NgModules or TRUNCATE", {"setstate", "ngmodule", "truncate"}, set()),
        ("no GDScript, c# only", {"*.gd"}, {"*.cs"}),
        ("don't touch .meta or refs.bib", {"*.meta", "refs.bib"}, set()),
    ],
)
def test_a_rule_speaks_of_what_its_words_name(rule: str, has: set[str], has_not: set[str]) -> None:
    triggers = set(compile_triggers(rule).all)
    assert has <= triggers
    assert not has_not & triggers


@pytest.mark.parametrize(
    ("rule", "refused"),
    [
        ("jobs go to the `fluid` partition now", set()),
        ("put scripts into tools/", set()),
        ("deploy with fly", set()),
        ("use `httpx` with a timeout", {"httpx"}),
        ("`terraform apply` is mine to run", {"terraform apply"}),
        ("ask before you use `httpx`", {"httpx"}),
        ("commit in English", {"git commit"}),
    ],
)
def test_a_guard_lets_a_call_pass_that_does_what_the_rule_orders(rule: str, refused: set[str]) -> None:
    assert compile_triggers(rule, channel="action")
    assert set(compile_triggers(rule, channel="action", guards=True).all) == refused


@pytest.mark.parametrize(
    ("rule", "command", "found"),
    [
        ("Never push to main.", "git push origin main", True),
        ("Never push to main.", "git push", True),
        ("Never push to main.", "git push -u origin HEAD:main", True),
        ("Never push to main.", "git push -u origin HEAD", True),
        ("Never push to main.", "git push origin fix/login", False),
        ("Never push to main.", "git push -u origin feature:feature", False),
        ("Never push to main.", "git push --force --all", True),
        ("Never push to main.", "git push -o ci.skip origin", True),
        ("Never push to main or force-push anywhere.", "git push --force origin fix", True),
        ("Never push to main. Ask before you push to develop.", "git push origin develop", True),
        ("Never push to main. Never push to master.", "git push origin fix", False),
        ("Nobody pushes to main.", "git push origin fix", False),
        ("Nobody pushes to main.", "git push origin main", True),
        # Each command of a line speaks for itself.
        ("Never push to main.", "git push origin fix; bash -c 'git push origin main'", True),
        ("Never push to main.", "bash -c 'git push origin fix'", False),
        ("Don't run kubectl delete on production.", "bash -c 'kubectl -n dev get pods; kubectl delete pod x'", True),
        ("Don't run kubectl delete on production.", "ssh staging 'kubectl delete pod x'", False),
        ("Don't push directly to main or master.", "git push origin master", True),
        ("Never push to anything but main.", "git push origin fix", True),
        ("Only push to main.", "git push origin fix", True),
        ("Don't run kubectl delete on production.", "kubectl delete pod x -n production", True),
        ("Don't run kubectl delete on production.", "kubectl delete pod x", True),
        ("Don't run kubectl delete on production.", "kubectl -n staging delete pod x", False),
        ("Only use kubectl against staging.", "kubectl -n production get pods", True),
        ("Never connect to the production database.", "psql -h db.prod.example.com", True),
        ("Never connect to the production database.", "psql -h localhost shop", False),
        ("Never connect to the production database.", "psql $DEV_URL -c 'select 1'", False),
        ("Don't run kubectl delete on production.", "sudo kubectl -n $DEV_SPACE delete pod x", False),
        ("Don't run kubectl delete on production.", 'kubectl delete pod "${local_pod}"', True),
        ("Don't touch generated/.", "ls generated/", False),
        ("Don't touch the .env file.", "cat .env", True),
    ],
)
def test_a_call_that_names_another_branch_or_place_is_not_meant(rule: str, command: str, found: bool) -> None:
    lookup = lookup_of([compile_triggers(rule)])
    assert bool(match_call(lookup, "Bash", {"command": command})) is found


@pytest.mark.parametrize(
    "rule",
    [
        *("Keep answers short.", "Write British English.", "We deploy on Tuesdays.", "Every function gets type hints."),
        *("The physics runs at 120 ticks.", "Private members begin with an underscore."),
    ],
)
def test_a_habit_of_speech_speaks_of_no_call(rule: str) -> None:
    assert not compile_triggers(rule)


@pytest.mark.parametrize(
    ("rule", "tool", "value", "found"),
    [
        ("Never call collect().", "Edit", "rows = table.collect()", True),
        ("Never call collect().", "Edit", "Parcels collect at the depot.", False),
        ("Never call collect().", "Edit", "table.recollect()", False),
        ("Never use os.path.", "Edit", "os.path.join(a, b)", True),
        ("Never use :latest.", "Bash", "kubectl set image api=shop/api:latest", True),
        ("Never use :latest.", "Bash", "git commit -m 'No :latest any more'", False),
        ("Never alter a table by hand.", "Bash", 'docker compose exec db psql -c "ALTER TABLE a ADD b"', True),
        ("Never call eval().", "Bash", "cat > a.py <<'X'\nprint(eval(x))\nX", True),
        ("Don't print the .env.", "Bash", "cat .env*", True),
    ],
)
def test_what_stands_in_code_is_found_in_new_text_and_in_what_a_program_runs(
    rule: str, tool: str, value: str, found: bool
) -> None:
    arguments = {"command": value} if tool == "Bash" else {"file_path": "a", "new_string": value}
    assert bool(match_call(lookup_of([compile_triggers(rule)]), tool, arguments)) is found


def test_a_member_of_an_object_is_no_file() -> None:
    assert "console.log" in compile_triggers("Use logger.info, not console.log.").words


def test_a_word_that_only_may_mean_a_call_counts_for_a_rule_of_action() -> None:
    rule = "Deployment is the user's."
    assert not compile_triggers(rule)
    assert "vercel" in compile_triggers(rule, channel="action").all
