# ruff: noqa: E501 — one pattern a line reads better than one cut into pieces; letters of other alphabets are meant.
"""By what a rule is recognised in other languages than English: words that ask to remember, that say from when on, that say
always or never, and the forms of an order.

An order is needed beside "always" and "from now on": "always fails" is a report. Where the imperative is spelled as the
third person is ("usa"), it counts only at its place in an order; elsewhere (`order_anywhere`) wherever it stands.
"""

from __future__ import annotations

from typing import NamedTuple


class LanguageWording(NamedTuple):
    """Regular expressions for the lower case of a sentence, without anchors."""

    name: str
    """The language, in English."""
    words: str
    """Words of which each rule in it has one, blank-separated; "" for scripts without blanks between words."""
    remember: str
    """Asks to remember what follows."""
    from_now: str
    """Says that what follows holds from now on."""
    always: str
    """Says always or never."""
    order: str
    """An order."""
    veto: str
    """A report, something past, somebody's words, or bound to this moment."""
    negation: str
    """Says not to."""
    here: str
    """Says that it is of this project."""
    order_anywhere: bool = False
    """An order counts wherever it stands in the sentence."""
    filler: str = ""
    """Words that may stand between."""
    tells: str = r"(?!)"
    """Words by which the first clause tells of something or somebody: no veto in what is to be remembered."""


GERMAN = LanguageWording(
    "German",
    "immer stets nie niemals merk merke merken jetzt sofort künftig zukünftig zukunft fortan",
    r"(?:merk|merke)\s+dir(?:\s+(?:bitte|mal|das))*\s*(?:,?\s*dass\b|[:,])|bitte\s+merken\s*:|(?:behalte?|halt)\s+(?:bitte\s+)?im\s+(?:kopf|hinterkopf)\s*(?:,?\s*dass\b|:)",
    r"(?:ab\s+(?:jetzt|sofort|heute|nun)|von\s+(?:jetzt|nun)\s+an|künftig|zukünftig|in\s+zukunft|fortan)",
    r"(?:immer|stets|nie|niemals)(?!\s+(?:noch|wieder|mehr|wenn|diese|dieser|dieses|mal|öfter)\b)",
    r"""(?:(?:an|aus|ab|auf|ein|hinzu|um|nach|vor|zu|mit|weg|durch|über)?(?:benutz|verwend|nutz|nehm|mach|schreib|push|committ?|merg|rebas|squash|deploy|installier|frag|prüf|test|führ|lass|lösch
        |änder|leg|erstell|füg|aktualisier|formatier|lint|vermeid|antwort|kommentier|dokumentier|benenn|les|zeig|start|stell|setz|geb|bau|halt|arbeit|sprech|entfern|bearbeit|überschreib)(?:en|n)
      | (?:du\s+(?:sollst|musst|darfst)|(?:schreib|benutz|verwend|nutz|mach|frag|push|teste|committe?|lösch|nimm|führ|prüf|antworte|lässt|läss)s?t\s+du)
      | (?:\A|(?<=[,:]\s)|(?<=bitte\s)|(?<=jetzt\s)|(?<=sofort\s)|(?<=künftig\s)|(?<=zukunft\s))(?:benutze?|verwende|nutze|nimm|mache?|schreibe?|pushe?|committe?|merge|rebase|deploye?|installiere|frage?|prüfe?|teste|führe?|lasse?|lösche?|ändere|lege?|erstelle|füge?|aktualisiere|formatiere|vermeide|antworte|kommentiere|dokumentiere|lies|zeige?|starte|stelle?|setze?|gib|baue?|halte?|arbeite|sprich|entferne|bearbeite|überschreibe?))""",
    r"diesmal|dieses\s+mal|heute|vorerst|erstmal|fürs\s+erste|im\s+moment|gerade|vorläufig|früher|damals|bisher|gestern|sag(?:t|te|en)|schreibt|schrieb|meint|meinte|laut|angeblich",
    r"nie|niemals|nicht|kein\w*|nichts",
    r"(?:diese[mrs]|unsere[mr])\s+(?:repo\w*|projekt\w*|codebase|branch)",
    True,
    tells=r"hat|hatte|habe|haben|wurde|war|waren|ist|gesehen|gehabt|wir|ich|man|er|es|sie|sich|soll|sollen|kann|können|wird|werden|muss|müssen",
)

FRENCH = LanguageWording(
    "French",
    "toujours jamais retiens retenez souviens souvenez rappelle désormais dorénavant maintenant avenir",
    r"(?:retiens|retenez|(?:souviens-toi|souvenez-vous|rappelle-toi))(?:\s+bien)?\s*(?:que\b|qu['’]|[:,])|(?:n['’]oublie\s+(?:pas|jamais)\s+qu(?:e\b|['’]))",
    r"(?:à\s+partir\s+de\s+(?:maintenant|aujourd['’]hui)|a\s+partir\s+de\s+maintenant|désormais|dorénavant|à\s+l['’]avenir)",
    r"(?:toujours|jamais)",
    r"""(?:(?:utilis|lanc|exécut|demand|pouss|install|modifi|supprim|effac|cré|ajout|chang|test|vérifi|committ?|merg|rebas|squash|format|nomm|gard|évit|touch|laiss|comment|document|mentionn|respect|travaill|écras|renomm|propos|expliqu|préfér|push)(?:e|ez|er)
      |déplo(?:ie|yez|yer)|fai(?:s|re|tes)|écri(?:s|re|vez)|met(?:s|tre|tez)|répon(?:ds|dre|dez)|pren(?:ds|dre|ez)|suivre|li(?:s|re|sez))""",
    r"cette\s+fois|pour\s+l['’]instant|pour\s+le\s+moment|aujourd['’]hui\s+(?:seulement|uniquement)|avant\s+on|dit|disait|disent|a\s+dit|selon|d['’]après|écrit\s+que|ce\s+script|comprends?|pourquoi|plante|échoue|mais",
    r"ne|n|pas|jamais|aucun|aucune|rien",
    r"(?:ce|notre)\s+(?:dépôt|projet|repo)",
    filler=r"(?:s['’]il\s+te\s+pla[iî]t|stp|tu(?:\s+dois)?|vous(?:\s+devez)?|il\s+faut|je\s+veux\s+que\s+tu|toujours|jamais|merci\s+de|ne(?:\s+(?:plus\s+)?jamais)?|n['’])",
)

SPANISH = LanguageWording(
    "Spanish",
    "siempre nunca jamás recuerda recuerde acuérdate ahora adelante",
    r"(?:recuerda|recuerde|acuérdate)(?:\s+(?:siempre|bien))?\s*(?:(?:de\s+)?que\b|[:,])|ten\s+en\s+cuenta\s+siempre\s+que\b",
    r"(?:a\s+partir\s+de\s+(?:ahora|hoy)|(?:de|desde)\s+ahora\s+en\s+adelante|desde\s+ahora|en\s+adelante)",
    r"(?:siempre|nunca|jamás)",
    r"""(?:us(?:a|ar|es|e)|utili[zc](?:a|ar|es|e)|ejecut(?:a|ar|es|e)|corr(?:e|er|as)|pregunt(?:a|ar|es|e)|escrib(?:e|ir|as|a)|ha(?:z|cer|gas|ga)|sub(?:ir|as)|instal(?:a|ar|es|e)|modifi(?:ca|car|ques|que)
      |borr(?:a|ar|es|e)|elimin(?:a|ar|es|e)|cre(?:ar|es)|añad(?:e|ir|as)|agreg(?:a|ar|ues)|cambi(?:a|ar|es)|prueb(?:a|es)|probar|revis(?:a|ar|es)|verifi(?:ca|car|ques)|pon(?:er|gas)?|respond(?:e|er|as)|habl(?:a|ar|es)
      |form?ate(?:a|ar|es)|evit(?:a|ar|es)|toc(?:ar|ues)|toques|dej(?:a|ar|es)|despl(?:iega|egar|iegues)|nombr(?:a|ar|es)|mant(?:én|ener|engas)|document(?:a|ar|es)|coment(?:a|ar|es)|actuali(?:za|zar|ces)|pushe(?:a|ar|es)|commite(?:a|ar|es)|merge(?:a|ar|es))(?:me|lo|la|los|las|te)?""",
    r"esta\s+vez|por\s+ahora|de\s+momento|por\s+el\s+momento|hoy|antes\s+(?:siempre|nunca)|había|dice|dijo|dicen|según|entiendo|por\s+qué|falla|bloquea|funciona|pero",
    r"no|nunca|jamás|ningún|ninguna|nada",
    r"(?:este|nuestro)\s+(?:repo\w*|proyecto)",
    filler=r"(?:por\s+favor|no|siempre|nunca|jamás|debes|tienes\s+que|hay\s+que|quiero\s+que|se\s+debe)",
)

PORTUGUESE = LanguageWording(
    "Portuguese",
    "sempre nunca jamais lembre lembra lembrar diante frente agora doravante",
    r"(?:lembre-se|lembre|lembra-te|lembra-se)(?:\s+sempre)?\s*(?:(?:de\s+)?que\b|[:,])|lembra\s*:",
    r"(?:de\s+agora\s+em\s+diante|daqui\s+(?:para|pra)\s+(?:a\s+)?frente|daqui\s+em\s+diante|a\s+partir\s+de\s+(?:agora|hoje)|doravante)",
    r"(?:sempre|nunca|jamais)",
    r"""(?:us(?:e|ar|es)|utili[zs](?:e|ar|es)|rod(?:e|ar|es)|execut(?:e|ar|es)|pergunt(?:e|ar|es|a)|escrev(?:a|er|as)|fa(?:ça|ças|zer)|coloqu(?:e|es)|colocar|instal(?:e|ar|es)|modifi(?:que|car|ques)|apag(?:ue|ar|ues)|delet(?:e|ar|es)
      |remov(?:a|er|as)|cri(?:e|ar|es)|adicion(?:e|ar|es)|mud(?:e|ar|es)|alter(?:e|ar|es)|test(?:e|ar|es)|verifi(?:que|car|ques)|revis(?:e|ar|es)|respond(?:a|er|as)|fal(?:e|ar|es)|format(?:e|ar|es)|evit(?:e|ar|es)|mex(?:a|er|as)|toqu(?:e|es)
      |deix(?:e|ar|es)|nomei(?:e|es)|nomear|mantenh(?:a|as)|manter|document(?:e|ar|es)|coment(?:e|ar|es)|atuali(?:ze|zar|zes)|suba|subir|envi(?:e|ar|es)|commit(?:e|ar|es)|mescl(?:e|ar|es))""",
    r"d?esta\s+vez|por\s+enquanto|por\s+agora|hoje|antes\s+(?:a|eu|nós)|diz|disse|dizem|segundo|entendo|por\s+que|falha|trava|funciona|mas",
    r"não|nunca|jamais|nenhum|nenhuma|nada|nem",
    r"(?:n?este|nosso|d?este)\s+(?:repo\w*|projeto|projecto)",
    filler=r"(?:por\s+favor|não|sempre|nunca|jamais|você\s+deve|deves|é\s+preciso|quero\s+que\s+(?:você|tu))",
)

ITALIAN = LanguageWording(
    "Italian",
    "sempre mai ricorda ricordati ricordate poi avanti futuro",
    r"(?:ricorda|ricordati|ricordatevi|tieni\s+a\s+mente)(?:\s+(?:bene|sempre))?\s*(?:che\b|[:,])",
    r"(?:d['’]ora\s+in\s+(?:poi|avanti)|da\s+ora\s+in\s+(?:poi|avanti)|da\s+adesso\s+in\s+(?:poi|avanti)|in\s+futuro)",
    r"(?:sempre|mai)",
    r"""(?:us(?:a|are)|utilizz(?:a|are)|esegu(?:i|ire)|lanci(?:a|are)|chied(?:i|ere)|scriv(?:i|ere)|fa(?:i|re)?|metti|mettere|install(?:a|are)|modific(?:a|are)|cancell(?:a|are)|elimin(?:a|are)|cre(?:a|are)|aggiung(?:i|ere)
      |cambi(?:a|are)|test(?:a|are)|verific(?:a|are)|controll(?:a|are)|rispond(?:i|ere)|parl(?:a|are)|formatt(?:a|are)|evit(?:a|are)|tocc(?:a|are)|lasci(?:a|are)|rinomin(?:a|are)|mant(?:ieni|enere)|document(?:a|are)|comment(?:a|are)|aggiorn(?:a|are)|push(?:a|are)|committ(?:a|are)|merg(?:ia|iare|e|are)|tien(?:i)|tenere|prend(?:i|ere))(?:mi|lo|la|li|le)?""",
    r"questa\s+volta|stavolta|per\s+ora|per\s+adesso|per\s+il\s+momento|oggi|dice|dicono|ha\s+detto|secondo|capisco|perché|fallisce|blocca|funziona|ma",
    r"non|mai|nessun\w*|niente|nulla",
    r"(?:questo|nostro)\s+(?:repo\w*|progetto)",
    filler=r"(?:per\s+favore|non|sempre|mai|devi|bisogna|voglio\s+che\s+tu)",
)

DUTCH = LanguageWording(
    "Dutch",
    "altijd nooit onthoud vanaf voortaan",
    r"onthoud(?:\s+(?:goed|alsjeblieft|even))*\s*(?:,?\s*dat\b|[:,])",
    r"(?:vanaf\s+(?:nu|heden)|voortaan|in\s+het\s+vervolg)",
    r"(?:altijd|nooit)",
    r"""(?:(?:aan|af|op|uit|toe|in|na|door|over)?(?:gebruiken|pushen|committen|mergen|rebasen|squashen|deployen|installeren|vragen|draaien|schrijven|testen|controleren|verwijderen|wijzigen|aanpassen|maken|toevoegen|bijwerken|formatteren|linten|vermijden|antwoorden|documenteren|uitvoeren|zetten|laten|doen|lezen|starten)
      | je\s+(?:moet|mag)|(?:schrijf|gebruik|vraag|draai|doe|maak|test|push|commit)\s+je
      | (?:\A|(?<=[,:]\s)|(?<=nu\s)|(?<=altijd\s)|(?<=nooit\s)|(?<=voortaan\s)|(?<=alsjeblieft\s))(?:gebruik|push|commit|merge|rebase|squash|deploy|installeer|vraag|draai|schrijf|test|controleer|verwijder|wijzig|maak|voeg|update|formatteer|lint|vermijd|antwoord|documenteer|zet|laat|doe|lees|start|voer))""",
    r"deze\s+keer|dit\s+keer|voorlopig|voor\s+nu|vandaag|vroeger|eerder|zegt|zei|zeggen|volgens",
    r"nooit|niet|geen|niets",
    r"(?:deze|onze|dit|ons)\s+(?:repo\w*|project)",
    True,
    tells=r"\A\w+\s+je|heb|heeft|had|is|was|waren|we|wij|ik|ze|het\s+werkt",
)

_PL_STEMS = r"używaj|użyj|pushuj|wypychaj|commituj|komituj|instaluj|uruchamiaj|uruchom|pisz|pytaj|zapytaj|usuwaj|kasuj|zmieniaj|modyfikuj|edytuj|dodawaj|dodaj|twórz|testuj|sprawdzaj|sprawdź|odpowiadaj|formatuj|unikaj|dokumentuj|komentuj|aktualizuj|merguj|rób|wdrażaj|nazywaj|zostawiaj|ruszaj|dotykaj|trzymaj|stosuj|wykonuj|czytaj"
POLISH = LanguageWording(
    "Polish",
    "zawsze nigdy zapamiętaj pamiętaj teraz odtąd pory przyszłości",
    r"(?:zapamiętaj|pamiętaj)(?:\s+sobie)?\s*(?:,?\s*że\b|[:,])",
    r"(?:od\s+(?:teraz|tej\s+pory|dziś|dzisiaj)|odtąd|w\s+przyszłości)",
    r"(?:zawsze|nigdy)",
    rf"(?:(?:{_PL_STEMS})(?:cie)?|(?:używa|uruchamia|pisa|pyta|usuwa|zmienia|edytowa|dodawa|testowa|sprawdza|commitowa|pushowa|instalowa|formatowa|stosowa|robi|modyfikowa)ć|(?:musisz|masz|powinieneś)\s+\w+ć)",
    r"tym\s+razem|na\s+razie|teraz\s+tylko|dzisiaj|dziś\s+tylko|kiedyś|wcześniej|mówi|mówił\w*|powiedział\w*|według|podobno",
    r"nie|nigdy|żadn\w*|nic",
    r"(?:tym|naszym)\s+(?:repo\w*|projekcie)",
    True,
    filler="nie",
)

_RU_STEMS = r"использу|пуш|запуска|запуст|устанавлива|спрашива|спрос|удаля|пиш|меня|измен|трога|добавля|созда|создава|тестиру|проверя|отвеча|формату|форматиру|избега|коммит|комментиру|документиру|обновля|мерж|дела|депло|называ|оставля|держ|применя|чита|переписыва|редактиру"
RUSSIAN = LanguageWording(
    "Russian",
    "всегда никогда запомни запомните помни момента отныне впредь пор дальнейшем",
    r"(?:запомни|запомните|помни|помните)\s*(?:,?\s*что\b|[:,])",
    r"(?:с\s+этого\s+момента|отныне|впредь|с\s+этих\s+пор|в\s+дальнейшем|с\s+сегодняшнего\s+дня)",
    r"(?:всегда|никогда)",
    rf"(?:(?:{_RU_STEMS})[йиь](?:те)?|(?:использова|запуска|устанавлива|спрашива|удаля|писа|меня|изменя|добавля|создава|тестирова|проверя|отвеча|форматирова|избега|комми|обновля|дела|деплои|пуши|мержи|применя|трога|редактирова)ть)",
    r"в\s+этот\s+раз|на\s+этот\s+раз|пока|сейчас|сегодня|раньше|прежде|говорит|сказал\w*|говорят|по\s+словам|пишет,?\s+что",
    r"не|никогда|ни|нельзя|без",
    r"(?:этом|нашем)\s+(?:репо\w*|проекте)",
    True,
    filler="не",
)

_UK_STEMS = r"використову|пуш|запуска|запуст|встановлю|пита|видаля|пиш|змін|зміню|чіпа|додава|створю|тесту|перевіря|відповіда|формату|уника|коміт|коменту|документу|оновлю|мерж|роб|назива|залиша|трима|застосову|чита|редагу"
UKRAINIAN = LanguageWording(
    "Ukrainian",
    "завжди ніколи запам запам'ятай запамятай пам'ятай відтепер віднині надалі моменту",
    r"(?:запам['’ʼ]?ятай(?:те)?|пам['’ʼ]?ятай(?:те)?)\s*(?:,?\s*що\b|[:,])",
    r"(?:відтепер|віднині|надалі|з\s+цього\s+моменту|на\s+майбутнє)",
    r"(?:завжди|ніколи)",
    rf"(?:(?:{_UK_STEMS})[йиь](?:те)?|пуш|(?:використовува|запуска|встановлюва|пита|видаля|писа|змінюва|додава|створюва|тестува|перевіря|відповіда|форматува|уника|коміти|оновлюва|роби|деплої|пуши|мержи|застосовува|редагува)ти)",
    r"цього\s+разу|поки(?:\s+що)?|зараз|сьогодні|раніше|колись|каже|казав|казала|кажуть|за\s+словами",
    r"не|ніколи|ні|без",
    r"(?:цьому|нашому)\s+(?:репо\w*|про[єе]кті)",
    True,
    filler="не",
)

TURKISH = LanguageWording(
    "Turkish",
    "zaman asla daima unutma unutmayın bundan artık hatırla aklında",
    r"(?:(?:şunu|bunu)\s+)?(?:unutma|unutmayın|aklında\s+tut|hatırla)\s*[:,]",
    r"(?:bundan\s+(?:sonra|böyle)|şu\s+andan\s+itibaren|artık(?=.*(?:\b(?:her|hep|hiç)\b|m[ae](?:y[ıi]n(?:[ıi]z)?)?[.!\s]*\Z)))",
    r"(?:her\s+zaman|daima|asla|hiçbir\s+zaman)",
    r"""(?:kullan|çalıştır|yap|yaz|sor|yükle|kur|sil|değiştir|ekle|oluştur|test\s+et|et|kontrol\s+et|cevapla|yanıtla|düzenle|güncelle|pushla|commitle|gönder|dokunm?|bırak|biçimlendir|adlandır|kaçın|tut|oku|başlat)
      (?:m[ae])?(?:y?[ıiuü]n(?:[ıiuü]z)?|(?:m[ae]l[ıi]s[ıi]n))?\s*[.!]*\s*\Z""",
    r"bu\s+sefer|bu\s+defa|bu\s+kez|şimdilik|bugün|eskiden|önceden|söylüyor|söyledi|dedi|diyor|göre",
    r"asla|hiçbir|değil|\w+m[ae](?:y[ıi]n(?:[ıi]z)?)?(?=[.!\s]*\Z)",
    r"(?:bu|bizim)\s+(?:repo\w*|proje\w*|depo\w*)",
    True,
)

SWEDISH = LanguageWording(
    "Swedish",
    "alltid aldrig ihåg hädanefter framöver fortsättningsvis nu",
    r"kom\s+ihåg(?:\s+alltid)?\s*(?:,?\s*att\b|[:,])|lägg\s+på\s+minnet\s*(?:,?\s*att\b|[:,])",
    r"(?:från\s+(?:och\s+med\s+)?nu(?:\s+och\s+framåt)?|fr\.?o\.?m\.?\s+nu|hädanefter|framöver|fortsättningsvis)",
    r"(?:alltid|aldrig)",
    r"""(?:använd|pusha|committ?a|merga|rebasa|squasha|deploya|installera|fråga|kör|köra|skriv|skriva|testa|kontrollera|ta\s+(?:\w+\s+)?bort|radera|ändra|lägg|skapa|uppdatera|formatera|linta|undvik|svara|dokumentera|gör|göra|låt|läs|starta|rör|sätt|använda|ta)
      |(?:du\s+(?:ska|måste|får)|ska\s+du|(?:skriver|använder|kör|frågar|gör)\s+du)""",
    r"den\s+här\s+gången|denna\s+gång|tills\s+vidare|just\s+nu|idag|i\s+dag|förr|tidigare|säger|sa|sade|enligt",
    r"aldrig|inte|ej|ingen|inget|inga",
    r"(?:det\s+här|vårt|detta)\s+(?:repo\w*|projekt\w*)",
    filler=r"(?:snälla|alltid|aldrig|inte|ska\s+du|du\s+ska)",
    tells=r"har|hade|är|var|vi|jag|de",
)

_CS_STEMS = r"používej|použij|pushuj|commituj|komituj|instaluj|spouštěj|spusť|piš|ptej|zeptej|maž|smaž|odstraňuj|měň|uprav(?:uj)?|přidávej|přidej|vytvářej|testuj|kontroluj|odpovídej|formátuj|vyhýbej|dokumentuj|komentuj|aktualizuj|merguj|dělej|nasazuj|pojmenovávej|nech(?:ávej)?|sahej|čti|přepisuj|udržuj"
CZECH = LanguageWording(
    "Czech",
    "vždy vždycky nikdy pamatuj zapamatuj teď odteď nynějška příště",
    r"(?:pamatuj|zapamatuj)(?:\s+si)?\s*(?:,?\s*že\b|[:,])",
    r"(?:od\s*teď|od\s+nynějška|od\s+této\s+chvíle|nadále|do\s+budoucna)",
    r"(?:vždycky|vždy|nikdy)",
    rf"(?:(?:ne)?(?:{_CS_STEMS})(?:te)?|(?:ne)?(?:používa|spouště|psá|pta|maza|měni|přidáva|testova|kontrolova|commitova|pushova|instalova|formátova|odpovída|děla|upravova)t)",
    r"tentokrát|zatím|prozatím|teď\s+jen|dnes|dřív\w*|kdysi|předtím|říká|řekl\w*|říkal\w*|podle|prý",
    r"ne\w+|nikdy|žádn\w*|bez",
    r"(?:tomto|našem)\s+(?:repo\w*|projektu)",
    True,
    tells=r"jsem|jsme",
)

CHINESE = LanguageWording(
    "Chinese",
    "",
    r"(?:请|請)?(?:你)?(?:一定要?|务必)?(?:记住|記住|牢记|牢記|记得|記得)(?:[:：,，]|一下[:：,，])",
    r"(?:从现在(?:开始|起)|從現在(?:開始|起)|从今(?:以后|往后)|今后|今後|以后(?=都|请|不要|要|每|提交|必须|一律|所有|别)|以後(?=都|請|不要|要|每))",
    r"(?:(?<![^，。,：:\s])(?:总是|總是|永远|永遠|始终|始終)|绝对|絕對|一律|千万|千萬|必须始终|每次都)",
    r"(?:(?:不要|别|不准|禁止|不许|请勿|切勿)(?!再?说)|(?:请|要|都|必须|一律|总是|總是|始终|始終|务必|开始|起|[,，])\s*(?:先)?(?:在[^，。]{1,12})?(?:用|使用|采用|运行|執行|执行|写|寫|提交|检查|检测|测试|询问|问|创建|删除|修改|添加|更新|回答|回复|格式化|保持|命名|安装|遵循|部署|确认|避免)|一律(?:使用|采用|用))",
    r"这次|這次|这一次|暂时|暫時|目前|今天|(?:\A|(?<=[，,。：:我你们們他她\s]))(?:以前|之前)|过去|曾经|从来|從來|说(?!明)|說(?!明)|(?<![数數证依])据|失败|失敗|报错",
    r"不|别|勿|禁止|没",
    r"(?:这个?|本|我们的)(?:项目|仓库|代码库)",
    True,
    tells=r"我们|我們|我|他|她",
)

JAPANESE = LanguageWording(
    "Japanese",
    "",
    r"(?:覚えて(?:おいて|て)?(?:ください|下さい|ね)?|記憶して(?:おいて)?(?:ください|下さい)?)(?:[:：、,])|[^。]{4,}(?:を|と)(?:覚えて(?:おいて)?|記憶して)(?:ください|下さい|ね)?[。！!]*\Z",
    r"(?:今後は?|これからは?|これ以降は?|以後は?)",
    r"(?:必ず|常に|絶対に?|決して|毎回|いつも)",
    r"(?:(?:て|で)(?:ください|下さい|くれ|ほしい|欲しい|ね)?|(?:ない(?:で(?:ください|下さい|ね|くれ)?)?|(?:る|う|く|す|む|つ|ぶ|ぬ|ぐ)|ない)こと|(?:する|使う|書く)ように(?:して(?:ください|下さい)?)?|禁止|しろ|せよ|するな)[。！!\s]*\Z",
    r"今回|とりあえず|今だけ|いったん|一旦|今日|以前|昔|(?<![るのた])前は|言って|言った|言わ|と書い|によると|そうです|らしい|困|助けて|エラー|失敗|落ち|壊れ|おかしい|直して",
    r"ない|決して|禁止|するな|ません|ず[にと]",
    r"(?:この|本|うちの)(?:プロジェクト|リポジトリ|レポジトリ)",
    True,
)

KOREAN = LanguageWording(
    "Korean",
    "",
    r"(?:기억해\s*(?:줘|둬|주세요|두세요)?|명심해(?:\s*줘|주세요)?)\s*[:,]|.{6,}(?:걸|것을|고|점을?)\s*(?:꼭\s*)?(?:기억해\s*(?:줘|둬|주세요|두세요)?|명심해)[.!\s]*\Z",
    r"(?:앞으로는?|이제부터는?|지금부터는?|이후로는?)",
    r"(?:항상|언제나|절대로?|반드시|매번)",
    r"(?:지\s*마(?:세요|라|십시오|요)?|(?:해|써|줘|둬|봐|라|려|와|가|고쳐)|(?:세요|십시오|하도록\s*해|금지|할\s*것|말\s*것))[.!\s]*\Z",
    r"이번|일단|지금은|당분간|오늘|예전|(?<!기[ ])전에는|라고|다고|했어|했다|에\s*따르면|실패|안\s*돼|나요|해요\s*\Z|[가-힣a-z](?:가|(?<![없같])이)\s",
    r"마(?:세요|라|십시오|요)?[.!\s]*\Z|절대|금지|말\s*것|않",
    r"(?:이|우리)\s*(?:프로젝트|저장소|레포)",
    True,
)

LANGUAGES = (
    *(GERMAN, FRENCH, SPANISH, PORTUGUESE, ITALIAN, DUTCH, POLISH, RUSSIAN, UKRAINIAN, TURKISH, SWEDISH, CZECH),
    *(CHINESE, JAPANESE, KOREAN),
)
