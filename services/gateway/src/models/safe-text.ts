/** What stands in for a masked string. */
const MASK = '***'
const MOST_CHARACTERS = 500

/** Strings that look like credentials or name an account, by the forms in which vendors issue them. */
const SECRET_LIKE = [
  /\b(?:bearer|basic)\s+[\w.~+/=-]{8,}/gi,
  /\b(?:sk|pk|rk|gw|xai|gsk|hf|ghp|gho|pplx|nvapi|csk|fw|r8|key|tgp|tok)[-_][\w*-]{6,}(?:\.[\w*-]+)*/gi,
  /\b(?:AIza|AKIA|ASIA|ya29\.)[\w-]{8,}/g,
  /\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g,
  /\b(?:org|proj|acct|wrkspc)[-_][A-Za-z0-9]{6,}/g,
  /(?<=\b(?:api[-_ ]?key|token|secret|password|authorization)["']?\s*[:=]\s*["']?)[^\s"',;]{4,}/gi,
]
/** Addresses: where a provider of the operator's own lies is nobody's business. */
const ADDRESS_LIKE = [
  /\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b/g,
  /\[[0-9a-f:]*:[0-9a-f:]*\](?::\d{1,5})?/gi,
  /\b(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:local|internal|svc|lan|corp|cluster))\b(?::\d{1,5})?/gi,
]

/**
 * An upstream's sentence made fit for a client: one line of at most 500 characters, without control characters, with
 * everything that looks like a credential, an account or an internal address masked. `hidden` are strings to mask
 * whatever they look like: the instance's key and host.
 */
export function safeText(text: string, hidden: readonly string[] = []): string {
  let line = text.trimStart().split(/[\r\n]/, 1)[0] ?? ''
  // before it is cut: half a secret would not be known for one
  for (const secret of hidden) if (secret.length > 3) line = line.replaceAll(secret, MASK)
  line = line.slice(0, 4 * MOST_CHARACTERS).replace(/\p{C}+/gu, ' ')
  for (const secret of hidden) if (secret.length > 3) line = line.replaceAll(secret, MASK)
  for (const pattern of SECRET_LIKE) line = line.replace(pattern, MASK)
  for (const pattern of ADDRESS_LIKE) line = line.replace(pattern, MASK)
  line = line.trim()
  return line.length <= MOST_CHARACTERS ? line : `${line.slice(0, MOST_CHARACTERS - 1).toWellFormed()}…`
}
