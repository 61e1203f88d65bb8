/** Sentences shown with a page's text; they hold nothing of the page. */
export const notices = {
  source: '[Source content truncated at the 5 MiB response limit.]',
  parser: '[Extracted content truncated at the parser-output limit.]',
  empty: '[The page is empty.]',
  script: '[No readable text: this page builds its content with JavaScript, which is not run.]',
  scriptShell:
    '[This page builds most of its content with JavaScript, which is not run; only the text that was delivered is shown.]',
  elements: '[The page is too large to be read whole; only its first part is shown.]',
  pdfPages: (first: number, last: number, all: number): string =>
    `[${span(first, last)} of ${all} ${was(first, last)} read.]`,
  pdfTime: (first: number, last: number, all: number): string =>
    `[Reading took too long: only ${span(first, last).toLowerCase()} of ${all} ${was(first, last)} read.]`,
  pdfPastEnd: (all: number): string => `[This PDF has no such page: it has ${pages(all)}.]`,
  pdfBroken: (count: number): string => `[${pages(count)} could not be read, being damaged.]`,
  pdfUnreadable: (all: number): string =>
    `[No text could be extracted from this PDF of ${pages(all)}: its fonts do not say which characters they show, so it would need OCR.]`,
  pdfImages: (all: number): string =>
    `[No text could be extracted from this PDF of ${pages(all)}: what its images may say would need OCR.]`,
  pdfSkipped: (numbers: number[]): string =>
    `[No text could be extracted from ${numbers.length === 1 ? 'page' : 'pages'} ${numbers.join(', ')}: unreadable fonts or images only.]`,
}

const pages = (count: number): string => (count === 1 ? '1 page' : `${count} pages`)
const span = (first: number, last: number): string => (first === last ? `Page ${first}` : `Pages ${first} to ${last}`)
const was = (first: number, last: number): string => (first === last ? 'was' : 'were')
