/** A page that a fetch provider's fake knows; any other address is one it cannot fetch. */
export interface FakePage {
  url: string
  text: string
  title?: string
}

/** What vendors take for an address. */
export const isFetchable = (text: unknown): text is string => {
  if (typeof text !== 'string' || text.length > 8_192 || !URL.canParse(text)) return false
  const { protocol, username, password } = new URL(text)
  return /^https?:$/.test(protocol) && username === '' && password === ''
}
