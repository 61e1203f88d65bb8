import { parseUrl } from '@tollgate/contracts'
import type { PdfiumCalls } from './pdfium.ts'

const URI_ACTION = 3
const MAX_LINKS = 1_000
const MAX_URL_BYTES = 2_048

/** Where a place of the page leads, by its link annotations; those within the document lead nowhere for us. */
export function openLinks(
  calls: PdfiumCalls,
  document: number,
  page: number,
): (x: number, y: number) => string | undefined {
  const links: { left: number; bottom: number; right: number; top: number; url: string }[] = []
  const scratch = calls.malloc(32)
  const [position, link, rect] = [scratch, scratch + 4, scratch + 8]
  new Uint32Array(calls.memory.buffer, scratch, 8).fill(0)
  for (let seen = 0; seen < MAX_LINKS && calls.FPDFLink_Enumerate(page, position, link) === 1; seen++) {
    const handle = new Uint32Array(calls.memory.buffer, link, 1)[0] ?? 0
    const url = urlOf(calls, document, handle)
    if (url === undefined || calls.FPDFLink_GetAnnotRect(handle, rect) !== 1) continue
    const [left = 0, top = 0, right = 0, bottom = 0] = new Float32Array(calls.memory.buffer, rect, 4)
    links.push({ left, right, bottom: Math.min(top, bottom), top: Math.max(top, bottom), url })
  }
  calls.free(scratch)
  if (links.length === 0) return () => undefined
  return (x, y) => links.find(({ left, right, bottom, top }) => x >= left && x <= right && y >= bottom && y <= top)?.url
}

function urlOf(calls: PdfiumCalls, document: number, link: number): string | undefined {
  const action = calls.FPDFLink_GetAction(link)
  if (action === 0 || calls.FPDFAction_GetType(action) !== URI_ACTION) return undefined
  const size = calls.FPDFAction_GetURIPath(document, action, 0, 0)
  if (size <= 1 || size > MAX_URL_BYTES) return undefined
  const buffer = calls.malloc(size)
  calls.FPDFAction_GetURIPath(document, action, buffer, size)
  const text = Buffer.from(calls.memory.buffer, buffer, size - 1).toString('utf8')
  calls.free(buffer)
  return webUrl(text)
}

/** An absolute URL that a reader may follow. */
export function webUrl(text: string): string | undefined {
  return /^(?:https?|mailto):/i.test(text) ? parseUrl(text)?.href : undefined
}
