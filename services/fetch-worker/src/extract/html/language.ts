/** Words that are frequent in one language and rare in the others. */
const frequent: Record<string, string> = {
  en: 'the and of to is that for with are this was from have you not',
  de: 'der die und das ist nicht mit den von für ein eine auf auch sich',
  fr: 'le les des est une dans pour que qui pas sur avec sont aux cette',
  es: 'el los las una por con para que del como más pero sus está este',
  it: 'il che di per una non con sono della nel anche più gli alla questo',
  pt: 'os uma não para com mais dos como mas foi das ao são pela também',
  nl: 'het een van en niet zijn voor met dat aan ook maar door worden naar',
}
const languageOf = new Map<string, string[]>()
for (const [language, words] of Object.entries(frequent))
  for (const word of words.split(' ')) languageOf.set(word, [...(languageOf.get(word) ?? []), language])

const scripts: [language: string, letters: RegExp][] = [
  ['ja', /[\u3040-\u30ff]/g],
  ['ko', /[\uac00-\ud7af]/g],
  ['zh', /[\u4e00-\u9fff]/g],
  ['el', /[\u0370-\u03ff]/g],
  ['he', /[\u0590-\u05ff]/g],
  ['th', /[\u0e00-\u0e7f]/g],
]
const SAMPLE_CHARACTERS = 4_000
const FEW_WORDS = 40

/** The language of a text by its script or its most frequent words; undefined when that does not tell. */
export function languageOfText(text: string): string | undefined {
  const sample = text.slice(0, SAMPLE_CHARACTERS)
  for (const [language, letters] of scripts) {
    if ((sample.match(letters)?.length ?? 0) * 10 > sample.length) return language
  }
  const words = sample.toLowerCase().match(/\p{L}+/gu) ?? []
  if (words.length < FEW_WORDS) return undefined
  const counts = new Map<string, number>()
  for (const word of words)
    for (const language of languageOf.get(word) ?? []) counts.set(language, (counts.get(language) ?? 0) + 1)
  const [first, second] = [...counts].sort((a, b) => b[1] - a[1])
  const isClear = first !== undefined && first[1] * 12 > words.length && first[1] > 1.5 * (second?.[1] ?? 0)
  return isClear ? first[0] : undefined
}
