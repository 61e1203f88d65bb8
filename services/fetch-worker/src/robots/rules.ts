/** Whether a site lets a path (with its query) be visited. */
export type RobotsRules = (path: string) => boolean

export const everything: RobotsRules = () => true
export const nothing: RobotsRules = () => false

interface Rule {
  allow: boolean
  pattern: string
}

/** A file may hold more; what is over goes unread, so that no file makes a look-up slow. */
const MOST_RULES = 1_000
const MOST_PATTERN_CHARACTERS = 500
const MOST_PATH_CHARACTERS = 2_000

/** The rules of a robots.txt for the crawler that calls itself `agent` (RFC 9309). What is no rule is skipped. */
export function parseRobots(text: string, agent: string): RobotsRules {
  const groups = readGroups(text)
  const own = groups.filter(({ agents }) => agents.includes(agent.toLowerCase()))
  const used = own.length > 0 ? own : groups.filter(({ agents }) => agents.includes('*'))
  const rules = used.flatMap((group) => group.rules).slice(0, MOST_RULES)
  // The most octets win; of two that are as long, the one that allows (RFC 9309 2.2.2).
  rules.sort((a, b) => b.pattern.length - a.pattern.length || Number(b.allow) - Number(a.allow))
  return (path) => {
    const visited = encoded(path.slice(0, MOST_PATH_CHARACTERS)).replaceAll('*', '%2A').replaceAll('$', '%24')
    return rules.find(({ pattern }) => covers(pattern, visited))?.allow ?? true
  }
}

interface Group {
  agents: string[]
  rules: Rule[]
}

function readGroups(text: string): Group[] {
  const groups: Group[] = []
  let group: Group | undefined
  let isNaming = false
  for (const line of text.split(/\r\n|[\r\n]/)) {
    const [, key = '', value = ''] =
      /^[ \t]*([a-z-]+)[ \t]*:[ \t]*([^#]*?)[ \t]*(?:#.*)?$/i.exec(line.slice(0, 2_048)) ?? []
    switch (key.toLowerCase()) {
      case 'user-agent':
        if (!group || !isNaming) {
          group = { agents: [], rules: [] }
          groups.push(group)
        }
        group.agents.push(value === '*' ? '*' : (/^[a-z_-]+/i.exec(value)?.[0] ?? '').toLowerCase())
        isNaming = true
        break
      case 'allow':
      case 'disallow':
        isNaming = false
        if (value !== '' && value.length <= MOST_PATTERN_CHARACTERS)
          group?.rules.push({ allow: key.toLowerCase() === 'allow', pattern: encoded(value) })
    }
  }
  return groups
}

/** One spelling for paths and patterns: escapes only where they are needed, in capitals (RFC 9309 2.2.2). */
const encoded = (path: string): string =>
  path
    .replace(/[^\x21-\x7e]+/g, (run) => encodeURIComponent(run.toWellFormed()))
    .replace(/%([0-9a-f]{2})/gi, (written, hex: string) => {
      const character = String.fromCharCode(Number.parseInt(hex, 16))
      return /[\w.~-]/.test(character) ? character : written.toUpperCase()
    })

/** A pattern covers what begins with it; `*` stands for anything, and `$` at its end for the path's end. */
function covers(pattern: string, path: string): boolean {
  const isWhole = pattern.endsWith('$')
  const [first = '', ...rest] = (isWhole ? pattern.slice(0, -1) : pattern).split('*')
  if (!path.startsWith(first)) return false
  if (rest.length === 0) return !isWhole || path === first
  const last = rest.pop() ?? ''
  let at = first.length
  for (const part of rest) {
    const found = path.indexOf(part, at)
    if (found === -1) return false
    at = found + part.length
  }
  return isWhole ? path.length - last.length >= at && path.endsWith(last) : path.indexOf(last, at) !== -1
}
