"""Function words, of English and of other languages: grammar, which says nothing about what a prompt is about.

A notes' index counts a word as rare that few notes have, so these words would weigh most in a question. Light module:
hooks import it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from collections.abc import Set as AbstractSet

_ENGLISH = (
    "a about after again all also am an and any are as at be because been before being both but by can could did "
    "do does doing done each else ever every for from get go had has have having he her here hers him his how i "
    "if im in into is it its itself ive just let lets me mine my myself now of on or other our ours own same "
    "shall she should so some such than that thats the their theirs them then there theres these they this those "
    "through to too until up us very was we were weve what when where which while who whom whose why will with "
    "would you your youre yours"
)
ENGLISH = frozenset(_ENGLISH.split())
"""Those of English. Statements are compared without them, so a word that can make another rule of one (no, only, more,
over) is not among them."""
_STOP = (
    "a about after again ain all also am an and any are as at be because been before being but by "
    "can could couldn d did didn do does doesn doing don done for from get give go had has have having he "
    "her here hers him his how i if in into is isn it its just let like ll m me more most my no not "
    "now of off on once only or other our out over own please re s same she should shouldn so some such t tell "
    "than that the their them then there these they this those through to too under until up us ve "
    "very was wasn we were weren what when where which while who whom whose why will with won would wouldn you "
    "your yours"
)
STOP_WORDS = frozenset(_STOP.split())
"""Those that a search leaves out: what is asked says little by them, and the halves of contractions nothing."""
_CHATTER = (
    "absolutely ack afternoon alright amazing anyway awesome bye cheers continue cool correct evening exactly "
    "excellent fine good goodbye great haha hello help hey hi hmm ideal indeed lgtm looks lol maybe morning nice "
    "night nope nvm ok okay oh oops perfect perhaps proceed ready really right see sorry sounds stop sure thank "
    "thanks thx wait welcome well wonderful wow yeah yep yes yup"
)
CHATTER = frozenset(_CHATTER.split())
"""Words of courtesy and consent: a prompt of nothing else is no question."""

_WORDS = {
    "cs": (
        "a aby ale ani asi až bez bude budou by byl byla bylo byly být co což do i jak jako jaké jaký je jeho "
        "jejich její jen jenom jestli ještě již jsem jsi jsme jsou já k kam kde kdo kdy když která které "
        "který kteří ku kvůli ma mají mezi mi mnou mně moc musí my mám máme mít mě můj může na nad naše ne "
        "nebo není než nic nám náš něco nějaký o od on ona oni ono pak po pod podle pokud pouze pro prosím "
        "proto protože proč před při s se si sice svůj ta tady tak také tam tato tedy ten tento teď to tohle "
        "toho tomu toto tu ty tím už v ve vy vám vás více však vše všechny z za zase ze či že"
    ),
    "de": (
        "aber alle allem allen aller alles als also am an andere anderen auch auf aus bei beim bin bis bist "
        "bitte da dabei dafür damit danach dann darauf darf darüber das dass dazu dein deine dem den denn der "
        "des deshalb die dies diese diesem diesen dieser dieses dir doch dort du durch eigentlich ein eine "
        "einem einen einer eines einfach einmal er es etwas euch fast für gar gegen geht gerade gib gibt "
        "haben halt hat hatte hier hin hinzu ich ihm ihn ihr ihre im immer in irgendein irgendeine ist ja "
        "jede jeden jeder jedes jetzt kann kannst kein keine keinen können könntest lass lieber mach mache "
        "machen mal man mehr mein meine meinem meinen meiner mich mir mit muss möchte müssen nach nein nicht "
        "nichts noch nochmal nun nur ob oder ohne schon sehr sein seine sich sie sind so soll sollen sollte "
        "sollten sondern tun um und uns unser unsere unserem unseren unter viel vom von vor wann war waren "
        "warum was weil welche welchem welchen welcher welches wenn wer werden wie wieder wieso will willst "
        "wir wird wirklich wo wollen worden wurde würde zeig zu zum zur zwischen über"
    ),
    "es": (
        "a ahora al algo alguna algunos algún ante antes aquí así aunque aún bien cada casi como con contra "
        "cual cuando cuál cuáles cuándo cuánto cuántos cómo de del desde donde dos dónde e el ella ellas "
        "ellos en entonces entre era es esa esas ese eso esos esta estar estas este esto estos estoy está "
        "están favor fue ha haber había hace hacer hacia hasta hay haz he la las le les lo los luego me mi "
        "mientras mis mucho muy más nada ni no nos nosotros nuestra nuestro o os otra otro para pero poco por "
        "porque puede pueden puedes puedo pues que quieres quiero quién qué se sea según ser si sido sin "
        "sobre solo son soy su sus sí sólo también tan tanto te tengo tiene tienen todas todavía todo todos "
        "tu tus un una unas uno unos usted va vamos voy y ya yo él"
    ),
    "fr": (
        "afin ai ainsi alors après as au aucun aucune aussi autre aux avant avec avez avoir avons bien bon "
        "car ce ceci cela celle celui ces cet cette chaque chez combien comme comment dans de depuis des donc "
        "dont du déjà elle elles en encore entre es est et eu faire fais fait faudrait faut ici il ils j je "
        "jusqu l la le les leur leurs lui là ma mais me mes moi mon ne non nos notre nous on ont ou où par "
        "parce pas peu peut peux plus pour pourquoi pouvez puis qu quand que quel quelle quelles quels qui "
        "quoi s sa sans se sera ses si soit son sont suis sur t ta te tes toi ton tous tout toute toutes trop "
        "très tu un une va vais vas vers veux voilà vos votre voudrais vous y ça étaient était été être"
    ),
    "it": (
        "a abbiamo ad adesso agli ai al alla alle allo anche ancora aveva bene che chi ci ciò come con cosa "
        "così da dai dal dalla dalle dei del della delle dello dentro di dopo dove due e ecco ed era erano "
        "essere fa fare fatto fino forse fra già gli ha hai hanno ho i il in io la le lei li lo loro lui ma "
        "me mi mia mio molto ne nei nel nella nelle nessuno niente no noi non nostra nostro o ogni ora per "
        "perchè perché però più poi possiamo posso prima puoi può qua qual quale quali quando quanti quanto "
        "quella quelle quelli quello questa queste questi questo qui quindi se sei sembra senza si sia siamo "
        "solo sono sopra sotto sta sto su sua sue sugli sui sul sulla suo suoi te ti tra tu tua tuo tutta "
        "tutte tutti tutto un una uno va vai voglio vorrei è"
    ),
    "nl": (
        "aan al alle alleen als altijd ben bij daar dan dat de deze die dit doe doen door dus een eens en er "
        "even geen gewoon had heb hebben heeft hem het hier hij hoe hoeveel iets ik in is ja je jij jouw kan "
        "kun kunnen maak maar mag me meer met mij mijn moet moeten na naar niet niets nog nu of om omdat "
        "onder ons onze ook op over te tegen toch toe tot u uit van veel via volgens voor vooral waar waarom "
        "wanneer want waren wat we wel welk welke werd wie wij wil willen worden wordt zal ze zelf zich zij "
        "zijn zo zonder zou"
    ),
    "pl": (
        "a aby albo ale aż bardzo bez być był była było będzie chcę ci co coś czemu czy dla dlaczego do gdy "
        "gdzie go i ich ile im inne ja jak jaka jaki jakie jako je jeden jego jej jest jestem jeszcze jeśli "
        "już kiedy kto ktoś która które który których lub ma mam mi mnie mną moja moje może można my mój na "
        "nad nam nas nasz nasza nasze nic nie niż no o od on ona one oni oraz po pod podczas poza przed przez "
        "przy sam się skąd swój są ta tak także tam te tego tej ten teraz też to trzeba tu tutaj ty tych "
        "tylko tym w was we więc wszystkie wszystko wy z za zamiast zawsze ze zrób że żeby"
    ),
    "pt": (
        "a agora ainda algo algum alguma ao aos aqui as assim até bem cada com como da das de dela dele deles "
        "depois do dos e ela elas ele eles em entre então era essa esse esta estar este estou está estão eu "
        "faz fazer foi há isso isto já la lhe lo lá mais mas me mesmo meu minha muito na nada nas nem ninguém "
        "no nos nossa nosso num numa não nós o onde os ou para pela pelas pelo pelos pode podem por porque "
        "porquê pra quais qual qualquer quando quanto quantos que quem quero se sem ser será seu seus sobre "
        "sua suas só também tem tenho ter tudo têm um uma umas uns vai vamos você vocês vou é"
    ),
    "ru": (
        "а без больше бы был была были было быть в вам вас ведь весь во вот все всего всех всё вы где да "
        "давай даже для до его ее если есть еще ещё её ж же за зачем здесь и из или им их к как какая какие "
        "какой ко когда кого которые который кто куда ли либо лучше мне много может можно мой моя мы на надо "
        "нам нас наш наша наши не него нее нет ни них но ну нужен нужна нужно о об один он она они оно от "
        "откуда очень по под пожалуйста пока после потом потому почему при про раз с сам свой сделай себя "
        "сейчас сколько со так также такой там те тебе тебя то тогда того тоже только том тот тут ты у уже "
        "хочу чего чем что чтобы чьё эта эти это этого этой этом этот я"
    ),
    "sv": (
        "alla allt att av bara bli blir de dem den denna det detta dig din du där då eller en ett fick finns "
        "från få får för gör göra ha han har henne hon hur här i igen in inga ingen inget inte ja jag kan "
        "kunna man med mellan men mer mig min mitt mycket måste nej ni nog nu när någon något några och om "
        "oss på sedan sig sin ska skall skulle som så tack till tills under upp ut utan vad var vara varför "
        "varje vem vi vid vilka vilken vilket vill än är även åt"
    ),
    "tr": (
        "acaba ama ancak artık aslında az bana bazı ben beni benim bir biraz biz bize bizim bu buna bunda "
        "bunu bunun burada da daha de değil diye en gibi göre hala hangi hangisi hem hep her hiç ile ise için "
        "içinde kadar kaç kez ki kim lütfen mi mu mü mı nasıl ne neden nerede nereye niye o olan olarak olsun "
        "olur ona onlar onu onun orada oysa sadece sana sen senin siz tüm var ve veya ya yani yok zaten çok "
        "çünkü şey şimdi şu"
    ),
    "uk": (
        "а або але без би був була були було бути в вам вас ваш вже ви вона вони воно все від він для до з за "
        "зараз зі й його кого коли котрий куди на навіщо над нам нас наш не нема ні ніж о об один по потім "
        "при про під після саме свій себе скільки та так також там те тебе тепер ти то тобі треба тут тільки "
        "у це цей цього цьому цю ця ці чи чому ще що щоб я як яка яке який якщо які і із її"
    ),
}
_SHARED = (
    "a ad ai al ale alle also am ama an ante ao aos as au aus av az ben bene bin bis bon by car ce ci co com comment "
    "con contra da dal dan das dat de dei del dem den der des det di die dig din dir dit do doe dont door dos du due "
    "e ed el em en encore er era es est et eu even fa fare fast favor fra gar gib go ha had halt han har hat hay haz "
    "he hem her hin ho hoe hon i ici il ile ils im in io is ise ist j ja je jen jest k kam kan kim kun l la las le "
    "lei les li lo los ma mach mag mal man mas me med men mer met mi mia min mio mir mis mit mon mu my na nad nada "
    "nas ne nel ni nic no nog non nos nu num nun nur o ob od of om on one ons op ora os oss over par para pas per "
    "plus po poco pod por pour prima pro proto qu qua quale que qui s sa sam sana sans se sea sei sem sen ser sera "
    "ses si sia sig sin ska so solo som son sta sto su sua sui sur t ta tak tam tan te tej tem ten tes ti till to "
    "todo toe ton tot tout tra tu tun ty u um uma un una under ut v va vai van var vara vas vem vers vi via vid vor "
    "vos w want war was wat we will wo y ya yo z za ze zo zu"
)
_HOMOGRAPHS = frozenset(_SHARED.split())
"""Words of these that are also words of English, names, or terms and abbreviations of programs (jest, ci, proto, todo):
they do not show which language it is."""


def is_significant(word: str) -> bool:
    """Whether a lower-case word is neither a stop word of English nor a single letter."""
    return word not in STOP_WORDS and (len(word) > 1 or word.isdigit() or not word.isascii())


def foreign_function_words(words: Sequence[str], english: Collection[str]) -> AbstractSet[str]:
    """The function words of the language that the `words` of a prompt are in; none where that is English, or not sure.

    `words`: all of them, in lower case; `english`: the function words of English.
    """
    best, most = "", (0, 0)
    for language, listed in _languages().items():
        own = [word for word in words if word in listed]
        found = sum(word not in _HOMOGRAPHS and word not in english for word in own), len(own)
        if found > most:
            best, most = language, found
    if not most[0] or most[1] <= sum(word in english for word in words):
        return frozenset()
    return _languages()[best]


_split: dict[str, frozenset[str]] = {}


def _languages() -> dict[str, frozenset[str]]:
    if not _split:
        _split.update((language, frozenset(listed.split())) for language, listed in _WORDS.items())
    return _split
