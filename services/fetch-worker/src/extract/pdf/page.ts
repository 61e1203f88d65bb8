/** A piece of text in one style on one line, as it is drawn; sizes in points, upright, from the page's lower left corner. */
export interface TextRun {
  text: string
  /** Where it begins and ends, and its baseline. */
  left: number
  right: number
  baseline: number
  /** Height of the font as it is drawn. */
  size: number
  isBold: boolean
  isMono: boolean
  /** Reads from right to left. */
  isRtl: boolean
  link?: string
}

export interface PdfPage {
  width: number
  height: number
  runs: TextRun[]
  /** Characters that were drawn in fonts that do not say which these are, beside those that are in the runs (BR-088). */
  unmapped: number
  /** Text was left out because the page has more of it than anybody is shown. */
  isCut: boolean
}

export interface PdfInfo {
  title?: string
  author?: string
  /** ISO 8601. */
  published?: string
  /** BCP 47. */
  language?: string
}

export interface PdfDocument {
  pageCount: number
  /** Reading came to the cap of the engine's memory, and can't go on. */
  readonly isFull: boolean
  info(): Promise<PdfInfo>
  /** A page by its number from 1, with at most `maxCharacters` that show; rejects when nothing can be made of it. */
  page(number: number, maxCharacters: number): Promise<PdfPage>
  close(): Promise<void>
}

/** `damaged` leaves it to another engine to try; `memory` does not. */
export type Opened =
  | { outcome: 'opened'; document: PdfDocument }
  | { outcome: 'failed'; failure: 'password' | 'damaged' | 'memory' }

export type PdfEngine = (bytes: Uint8Array) => Promise<Opened>

/** `D:20240131120000+01'00'` (ISO 32000-1, 7.9.4) as ISO 8601, with no more of it than is there. */
export function pdfDate(text: string): string | undefined {
  const read = /^(?:D:)?(\d{4})(?:(\d\d)(?:(\d\d)(?:(\d\d)(?:(\d\d)(\d\d)?)?(?:(Z)|([+-])(\d\d)'?(\d\d)?)?)?)?)?/.exec(
    text.trim(),
  )
  if (!read) return undefined
  const [, year, month, day, hour, minute, second = '00', zulu, sign, zoneHours = '00', zoneMinutes = '00'] = read
  const date = [year, month, day].filter((part) => part !== undefined).join('-')
  const zone = zulu ? 'Z' : sign ? `${sign}${zoneHours}:${zoneMinutes}` : ''
  const written = hour && minute ? `${date}T${hour}:${minute}:${second}${zone}` : date
  return Number.isNaN(Date.parse(written)) ? undefined : written
}
