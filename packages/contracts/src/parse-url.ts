/**
 * The URL that a text is, undefined when it is none. What every service asks instead of `URL.canParse`: once that is called
 * often, Node 20 takes Latin-1 text for UTF-8 in it, and a host such as `bücher.example` is no host any more.
 */
export function parseUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}
