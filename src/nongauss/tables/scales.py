"""Scales of words that everyone knows: answers of surveys, marks, sizes, in a dozen languages."""

from __future__ import annotations

SCALES: dict[str, str] = {
    "agreement": "strongly disagree, disagree strongly, completely disagree, totally disagree, fully disagree"
    " < disagree, mostly disagree < somewhat disagree, slightly disagree, mildly disagree, rather disagree"
    " < neutral, neither agree nor disagree, neither, undecided, unsure"
    " < somewhat agree, slightly agree, mildly agree, rather agree < agree, mostly agree"
    " < strongly agree, agree strongly, completely agree, totally agree, fully agree",
    "quality": "terrible, awful, unacceptable, unacc < very poor, very bad < poor, bad, insufficient"
    " < below average < fair, average, ok, okay, acceptable, acc, mediocre, satisfactory, sufficient, neutral"
    " < above average < good < very good, vgood < great < excellent < outstanding, perfect",
    "quality, fair below average": "very poor < poor < below average < fair < average, typical"
    " < above average < good < very good < excellent",
    "quality of gems": "fair < good < very good < premium < ideal",
    "quality in codes": "po < fa < ta < gd < ex",
    "size": "xxxs < xxs < xs, extra small, tiny < s, small < m, medium, mid, mid size < l, large, big"
    " < xl, extra large, very large, huge < xxl, 2xl < xxxl, 3xl, giant < xxxxl, 4xl < 5xl",
    "amount by letters": "vl < l < m < h < vh",
    "amount": "none, no, zero, nothing, absent < minimal, lowest, very low < low, little"
    " < medium, moderate, mid, middle, average, normal < high, much, elevated < very high, highest"
    " < extreme, critical",
    "number": "none < few, a few < some, several < many, a lot < most < all",
    "frequency": "never < almost never, hardly ever, very rarely < rarely, seldom"
    " < occasionally, once in a while < sometimes < often, frequently, regularly"
    " < usually, very often, most of the time < almost always, nearly always < always",
    "intervals of time": "never < yearly, annually < quarterly < monthly < weekly < daily < hourly",
    "likelihood": "impossible < extremely unlikely, very unlikely, highly unlikely < unlikely, improbable"
    " < somewhat unlikely < neutral, possible, maybe, even < somewhat likely < likely, probable"
    " < extremely likely, very likely, highly likely < certain",
    "severity": "none, absent, healthy, no, normal < minimal, trace, very mild < mild, minor, slight, low"
    " < moderate, medium < moderately severe < severe, serious, major, high"
    " < very severe, critical, extreme, life threatening < fatal, death, dead",
    "education": "none, no schooling, uneducated < preschool < primary, primary school, elementary,"
    " elementary school < middle school, lower secondary, junior high, less than high school"
    " < high school, secondary, secondary school, hs grad, upper secondary, high school graduate"
    " < some college < associate, associates, associate degree < bachelor, bachelors, undergraduate, college,"
    " university, bachelor degree < master, masters, graduate, postgraduate, master degree"
    " < professional, prof school < doctorate, doctoral, phd",
    "satisfaction": "very dissatisfied, very unsatisfied, extremely dissatisfied, completely dissatisfied"
    " < dissatisfied, unsatisfied < somewhat dissatisfied, slightly dissatisfied"
    " < neutral, neither, neither satisfied nor dissatisfied < somewhat satisfied, slightly satisfied"
    " < satisfied < very satisfied, extremely satisfied, completely satisfied",
    "frequency in two weeks": "not at all < several days < more than half the days < nearly every day",
    "extent": "not at all, not at all likely, not at all satisfied"
    " < slightly, a little, a little bit, slightly likely"
    " < somewhat, moderately, to some extent, somewhat likely, moderately likely"
    " < quite, quite a bit, very, very likely < extremely, very much, extremely likely, completely",
    "expectations": "far below expectations, well below expectations"
    " < below expectations, does not meet expectations, below, needs improvement"
    " < meets expectations, meets, met expectations < exceeds expectations, exceeds, above expectations"
    " < far exceeds expectations, greatly exceeds expectations, well above expectations, outstanding",
    "importance": "unimportant, not important, not at all important < slightly important"
    " < moderately important, somewhat important < important < very important < extremely important",
    "happiness": "very unhappy < unhappy < neutral < happy < very happy",
    "sentiment": "overwhelmingly negative < very negative < negative < mostly negative, somewhat negative"
    " < neutral, mixed < mostly positive, somewhat positive < positive < very positive"
    " < overwhelmingly positive",
    "difficulty": "very easy < easy < medium, moderate, normal < hard, difficult < very hard, very difficult",
    "speed": "very slow < slow < medium, moderate, normal < fast < very fast",
    "warmth": "freezing < cold < cool < mild < warm < hot",
    "age": "child, infant < teenager, teen, adolescent < young, young adult < middle aged, middle, adult"
    " < old, senior, elderly",
    "confirmation": "definitely not < no, probably not < maybe, perhaps, unsure, undecided"
    " < yes, probably < definitely",
    "rank": "lower, bottom < middle, mid < upper, top",
    "medals": "bronze < silver < gold < platinum < diamond",
    "agreement in German": "stimme überhaupt nicht zu, stimme gar nicht zu, trifft überhaupt nicht zu,"
    " trifft gar nicht zu < stimme nicht zu, trifft nicht zu, lehne ab"
    " < stimme eher nicht zu, trifft eher nicht zu"
    " < neutral, teils teils, weder noch, unentschieden, weiß nicht < stimme eher zu, trifft eher zu"
    " < stimme zu, trifft zu < stimme voll zu, stimme voll und ganz zu, stimme völlig zu, trifft voll zu,"
    " trifft voll und ganz zu, trifft völlig zu",
    "agreement in French": "pas du tout daccord, tout à fait en désaccord < pas daccord, en désaccord"
    " < plutôt pas daccord < neutre, ni daccord ni pas daccord, ni en accord ni en désaccord, sans opinion"
    " < plutôt daccord < daccord < tout à fait daccord, totalement daccord",
    "agreement in Spanish": "totalmente en desacuerdo, muy en desacuerdo < en desacuerdo"
    " < algo en desacuerdo < neutral, ni de acuerdo ni en desacuerdo, indeciso < algo de acuerdo"
    " < de acuerdo < totalmente de acuerdo, muy de acuerdo",
    "agreement in Italian": "per niente daccordo, totalmente in disaccordo, completamente in disaccordo"
    " < in disaccordo, non sono daccordo, poco daccordo < abbastanza in disaccordo"
    " < neutrale, né daccordo né in disaccordo, indeciso < abbastanza daccordo < daccordo"
    " < totalmente daccordo, completamente daccordo, molto daccordo",
    "agreement in Portuguese": "discordo totalmente, discordo completamente < discordo"
    " < discordo parcialmente < neutro, nem concordo nem discordo, indeciso < concordo parcialmente"
    " < concordo < concordo totalmente, concordo completamente",
    "agreement in Dutch": "helemaal mee oneens, zeer mee oneens, helemaal oneens, zeer oneens"
    " < oneens, mee oneens < enigszins mee oneens"
    " < neutraal, niet mee eens en niet mee oneens < enigszins mee eens < eens, mee eens"
    " < helemaal mee eens, zeer mee eens, helemaal eens, zeer eens",
    "quality in German": "sehr schlecht, ungenügend < schlecht, mangelhaft < ausreichend, mäßig"
    " < mittel, mittelmäßig, durchschnittlich, befriedigend < gut < sehr gut < ausgezeichnet, hervorragend",
    "quality in French": "très mauvais, très mauvaise, très mal < mauvais, mauvaise, mal, médiocre"
    " < passable, moyen, moyenne, correct < assez bien < bon, bonne, bien < très bon, très bonne, très bien"
    " < excellent, excellente",
    "quality in Spanish": "muy malo, muy mala, muy mal, pésimo < malo, mala, mal < regular, medio, aceptable"
    " < bueno, buena, bien < muy bueno, muy buena, muy bien < excelente",
    "quality in Italian": "pessimo, molto scarso, molto male < scarso, cattivo, insufficiente, male"
    " < sufficiente, discreto, medio < buono, buona, bene < molto buono, ottimo, molto bene < eccellente",
    "quality in Portuguese": "péssimo, muito mau, muito ruim < mau, ruim, má < regular, médio, razoável"
    " < bom, boa < muito bom, muito boa, ótimo < excelente",
    "quality in Dutch": "zeer slecht, heel slecht < slecht < matig, onvoldoende < voldoende, redelijk"
    " < goed < zeer goed, heel goed < uitstekend",
    "satisfaction in German": "sehr unzufrieden < unzufrieden < eher unzufrieden"
    " < neutral, teils teils, weder noch < eher zufrieden < zufrieden < sehr zufrieden",
    "satisfaction in French": "très insatisfait, très mécontent, pas du tout satisfait"
    " < insatisfait, mécontent, pas satisfait < plutôt insatisfait < neutre < plutôt satisfait"
    " < satisfait < très satisfait",
    "satisfaction in Spanish": "muy insatisfecho < insatisfecho < algo insatisfecho < neutral, indiferente"
    " < algo satisfecho < satisfecho < muy satisfecho",
    "satisfaction in Italian": "molto insoddisfatto < insoddisfatto < abbastanza insoddisfatto < neutrale"
    " < abbastanza soddisfatto < soddisfatto < molto soddisfatto",
    "satisfaction in Portuguese": "muito insatisfeito < insatisfeito < pouco satisfeito < neutro, indiferente"
    " < satisfeito < muito satisfeito",
    "satisfaction in Dutch": "zeer ontevreden < ontevreden < neutraal < tevreden < zeer tevreden",
    "frequency in German": "nie, niemals < sehr selten, fast nie < selten < gelegentlich < manchmal"
    " < oft, häufig < meistens, sehr oft, sehr häufig < fast immer < immer",
    "frequency in French": "jamais < presque jamais, très rarement < rarement < parfois, quelquefois"
    " < souvent < très souvent < presque toujours < toujours",
    "frequency in Spanish": "nunca < casi nunca < rara vez, raramente < a veces, algunas veces"
    " < a menudo, frecuentemente, con frecuencia < muy a menudo < casi siempre < siempre",
    "agreement in Norwegian and Danish": "helt uenig < uenig, litt uenig"
    " < nøytral, verken enig eller uenig, hverken enig eller uenig < enig, litt enig < helt enig",
    "agreement in Swedish": "instämmer inte alls < instämmer inte < neutral, varken eller < instämmer"
    " < instämmer helt",
    "agreement in Polish": "zdecydowanie nie < raczej nie < trudno powiedzieć, ani tak ani nie < raczej tak"
    " < zdecydowanie tak",
    "frequency in Italian": "mai < quasi mai < raramente < a volte, qualche volta < spesso < molto spesso"
    " < quasi sempre < sempre",
    "frequency in Portuguese": "nunca < quase nunca < raramente < às vezes, por vezes"
    " < frequentemente, com frequência, muitas vezes < quase sempre < sempre",
    "frequency in Dutch": "nooit < bijna nooit < zelden < soms, af en toe < vaak, regelmatig < bijna altijd"
    " < altijd",
    "amount in German": "keine, kein, keiner < sehr niedrig, sehr gering < niedrig, gering, wenig, leicht"
    " < mittel, mäßig, normal < hoch, viel, stark < sehr hoch, sehr stark",
    "amount in French": "aucun, aucune, nul < très faible, très bas < faible, bas, basse, léger, peu"
    " < moyen, moyenne, modéré, modérée < élevé, élevée, haut, fort, forte, beaucoup < très élevé, très fort",
    "amount in Spanish": "ninguno, ninguna, nada < muy bajo, muy baja < bajo, baja, leve, poco"
    " < medio, media, moderado, moderada, normal < alto, alta, grave, mucho < muy alto, muy alta",
    "amount in Italian": "nessuno, nessuna < molto basso, molto bassa < basso, bassa, lieve, poco"
    " < medio, media, moderato, moderata, normale < alto, alta, grave, molto < molto alto, molto alta",
    "amount in Portuguese": "nenhum, nenhuma, nada < muito baixo, muito baixa < baixo, baixa, leve, pouco"
    " < médio, média, moderado, moderada, normal < alto, alta, grave, muito < muito alto, muito alta",
    "amount in Dutch": "geen < zeer laag < laag, licht, weinig < gemiddeld, matig, normaal"
    " < hoog, ernstig, veel < zeer hoog",
    "size in German": "sehr klein < klein < mittel, mittelgroß < groß < sehr groß",
    "size in French": "très petit < petit, petite < moyen, moyenne < grand, grande < très grand",
    "size in Spanish": "muy pequeño < pequeño, pequeña < mediano, mediana < grande < muy grande",
}
"""Words from lowest to highest, as one writes them in lower case; those between commas share a place."""

_NO_ANSWER = (
    "don't know|dont know|do not know|don’t know|dk|dk/na|dk/nr|don't know / no answer"
    "|can't say|cannot say|no answer|not answered|no response|not stated|not specified|not sure / don't know"
    "|prefer not to say|prefer not to answer|prefer not to disclose|would rather not say|rather not say"
    "|refused|refuse|declined|declined to answer|refused to answer|choose not to answer|not applicable|n/a"
    "|does not apply|weiß nicht|weiss nicht|weiß ich nicht|keine angabe|keine angaben|k. a.|k.a."
    "|keine antwort|keine ahnung|entfällt|ne sait pas|je ne sais pas|nsp|sans opinion|sans réponse"
    "|ne se prononce pas|ns/nr|ns/nc|ns / nc|no sabe|no sabe / no contesta|no sabe/no contesta"
    "|no sé|no contesta|no aplica|prefiero no contestar|non so|non sa|non risponde|preferisco non rispondere"
    "|non applicabile|não sei|não sabe|não responde|não se aplica|prefiro não responder|weet niet"
    "|weet ik niet|geen antwoord|geen mening|niet van toepassing|vet ej|vet inte|vet ikke|ved ikke"
    "|en osaa sanoa|nie wiem|trudno powiedzieć|nevím|не знаю|затрудняюсь ответить|bilmiyorum"
)
NO_ANSWER = frozenset(_NO_ANSWER.split("|"))
"""What people write who answer neither this nor that, in lower case."""
