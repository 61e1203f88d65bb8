import { declaredCharset } from './content-type.ts'

/** Bytes of a page in which a `<meta charset>` or an XML declaration is looked for. */
const PRESCAN_BYTES = 4_096

/**
 * Bytes as text. The byte-order mark decides, then the header, then what the document says of itself, then UTF-8; what
 * cannot be decoded becomes U+FFFD (F-34, BR-081 to BR-084). The last character of a body that was cut is dropped when it is not whole.
 */
export function decode(bytes: Uint8Array, contentType: string | undefined, isCut: boolean): string {
  const charset = byteOrderMark(bytes) ?? usable(declaredCharset(contentType)) ?? declaredInside(bytes) ?? 'utf-8'
  return new TextDecoder(charset).decode(bytes, { stream: isCut })
}

function byteOrderMark(bytes: Uint8Array): string | undefined {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8'
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  return bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : undefined
}

/** The encoding that a label means by the WHATWG's list (`gb2312` is GBK); undefined for one that is on no list. */
function usable(label: string | undefined): string | undefined {
  try {
    return label === undefined ? undefined : new TextDecoder(label.trim()).encoding
  } catch {
    return undefined
  }
}

/** A document that could be read this far is no UTF-16, whatever it says (HTML 13.2.3.3). */
function declaredInside(bytes: Uint8Array): string | undefined {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, PRESCAN_BYTES)).toString('latin1')
  const xml = /^\s*<\?xml\s[^>]*?encoding\s*=\s*["']([\w.:-]+)["']/i.exec(head)?.[1]
  const label = xml ?? metaCharset(head.replace(/<!--[\s\S]*?-->/g, ''))
  const encoding = usable(label)
  return encoding?.startsWith('utf-16') ? 'utf-8' : encoding
}

function metaCharset(head: string): string | undefined {
  for (const [meta] of head.matchAll(/<meta\s[^>]*>/gi)) {
    const found = /charset\s*=\s*["']?\s*([\w.:-]+)/i.exec(meta)?.[1]
    if (found) return found
  }
  return undefined
}
