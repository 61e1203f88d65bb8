import { known, TAG_COUNT } from '../tags.ts'

/** Elements that say what they hold, one bit each; what holds for an element holds for all in it. */
const places = [
  'nav',
  'header',
  'footer',
  'aside',
  'form',
  'main',
  'article',
  'section',
  'figure',
  'table',
  'ul',
  'ol',
  'dl',
  'details',
  'blockquote',
  'noscript',
  'button',
  'label',
  'pre',
  'figcaption',
  'dialog',
  'address',
  'li',
  'code',
  'time',
] as const
export type Place = (typeof places)[number]
export const placeNames: readonly Place[] = places
export const placeBit = new Int32Array(TAG_COUNT)
for (const [at, name] of places.entries()) placeBit[known(name)] = 1 << at
export const bitOf = (place: Place): number => placeBit[known(place)] as number

/** What `role` says, in place of an element's name. */
export const roleBits = new Map<string, number>(
  Object.entries({
    navigation: bitOf('nav'),
    menu: bitOf('nav'),
    banner: bitOf('header'),
    contentinfo: bitOf('footer'),
    complementary: bitOf('aside'),
    search: bitOf('form'),
    dialog: bitOf('dialog'),
    alert: bitOf('dialog'),
    main: bitOf('main'),
    article: bitOf('article'),
    button: bitOf('button'),
  }),
)
export const notOfThePage = bitOf('nav') | bitOf('footer') | bitOf('aside') | bitOf('form') | bitOf('dialog')
