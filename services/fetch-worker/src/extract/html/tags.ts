/** How an element behaves in a page's text: a block of its own, part of a line, or nothing that is read. */
export type Display = 'block' | 'inline' | 'cell' | 'void' | 'hidden'

const display: Record<Display, string> = {
  block:
    'html body address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure footer form ' +
    'h1 h2 h3 h4 h5 h6 header hgroup hr li legend main menu nav ol optgroup p pre search section summary table caption ' +
    'colgroup tbody thead tfoot tr ul video audio noscript',
  cell: 'td th',
  inline:
    'a abbr acronym b bdi bdo big button cite code data del dfn em font i ins kbd label mark math meter output progress q ' +
    'rp rt ruby s samp slot small span strike strong sub sup time tt u var picture',
  void: 'area base basefont bgsound br col embed frame img input keygen link meta param source track wbr',
  hidden:
    'head title script style template svg iframe object canvas applet map select option datalist noframes noembed textarea',
}

/** Number of a text node in place of a tag. */
export const TEXT = 0

const numbers = new Map<string, number>()
const names: string[] = ['#text']
const displays: Display[] = ['inline']
for (const [kind, list] of Object.entries(display) as [Display, string][]) {
  for (const name of list.split(' ')) {
    numbers.set(name, names.length)
    names.push(name)
    displays.push(kind)
  }
}
/** Custom and unknown elements: transparent, they are whatever they hold. */
export const UNKNOWN = names.length
names.push('#unknown')
displays.push('inline')

export const TAG_COUNT = names.length

export const tagNumber = (name: string): number => numbers.get(name) ?? UNKNOWN
export const tagName = (tag: number): string => names[tag] ?? '#unknown'
export const displayOf = (tag: number): Display => displays[tag] ?? 'inline'

/** The number of a tag this project names in code; a misspelt one fails when the module loads. */
export function known(name: string): number {
  const tag = numbers.get(name)
  if (tag === undefined) throw new TypeError(`no such tag: ${name}`)
  return tag
}

/** Membership as a table, so that asking costs an index. */
export function tagSet(list: string): Uint8Array {
  const set = new Uint8Array(TAG_COUNT)
  for (const name of list.split(' ')) set[known(name)] = 1
  return set
}
