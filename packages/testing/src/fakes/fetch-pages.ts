import { parseUrl } from '@tollgate/contracts'
/** A page that a fetch provider's fake knows; any other address is one it cannot fetch. */
export interface FakePage {
  url: string
  text: string
  title?: string
}

/** What vendors take for an address. */
export const isFetchable = (text: unknown): text is string => {
  const url = typeof text === 'string' && text.length <= 8_192 ? parseUrl(text) : undefined
  return url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''
}
