/**
 * What the words in an element's class and id hint at. Names are made by people for people, and by and large the same
 * everywhere; no hint decides anything by itself (BR-097): it is one of many things the model weighs.
 */
const hints: [name: string, words: RegExp][] = [
  [
    'nav',
    /^(?:nav|navbar|navigation|menus?|megamenu|submenu|dropdown|topbar|toolbar|tabs?|offcanvas|drawer|hamburger)$|navi|menu/,
  ],
  ['foot', /foot|^(?:copyright|legal|colophon|bottom)$/],
  ['head', /header|masthead|^(?:head|topbar|hdr)$/],
  ['side', /side|^(?:rail|gutter|right|left|secondary|col2)$/],
  ['share', /share|social|^(?:twitter|facebook|follow|addthis|sns)$/],
  [
    'relate',
    /relat|recommend|suggest|similar|^(?:more|also|next|prev|previous|trending|popular|upsell|crosssell|upnext|latest|recent|featured|further|discover)$/,
  ],
  ['comment', /comment|discuss|disqus|respond|^(?:reply|replies|reaction)$/],
  ['promo', /promo|advert|sponsor|^(?:ad|ads|adv|banner|cta|offer|deal|upsell|outbrain|taboola|marketing)$/],
  ['signup', /newsletter|subscri|signup|signin|login|register|^(?:account|paywall|regwall|auth|member)$/],
  ['cookie', /cookie|consent|gdpr|privacy|^(?:onetrust|ccpa)$/],
  ['crumb', /crumb/],
  ['page', /paginat|^(?:pager|paging)$/],
  ['modal', /modal|popup|overlay|dialog|lightbox|toast|tooltip|^(?:alert|notification|notice)$/],
  ['widget', /widget|gadget|^(?:module|plugin)$/],
  ['byline', /byline|author|^(?:writer|contributor|avatar|profile|bio|user|username|poster)$/],
  [
    'meta',
    /metadata|postmeta|entrymeta|^(?:meta|date|time|timestamp|published|updated|info|stats|count|views|likes|votes?|posted)$/,
  ],
  ['tag', /taglist|^(?:tags?|category|categories|labels?|badge|topics?|keywords|chips?|pill)$/],
  [
    'caption',
    /caption|credit|^(?:figure|photo|image|img|thumb|thumbnail|gallery|carousel|slider|slides?|media|video)$/,
  ],
  [
    'content',
    /content|article|description|^(?:body|text|story|entry|main|post|copy|prose|markdown|rte|wysiwyg|richtext|desc|summary)$/,
  ],
  ['product', /product|^(?:pdp|item|sku|variant|specs?|specifications?|features?|details?|ingredients?)$/],
  [
    'price',
    /price|cart|basket|checkout|addto|^(?:buy|shipping|delivery|stock|qty|quantity|wishlist|swatch|options?|filters?|facets?|sort|sorting|refine)$/,
  ],
  ['review', /review|rating|testimonial|^(?:star|stars|score)$/],
  ['list', /listing|^(?:list|grid|cards?|tiles?|rows?|feed|stream|results?|items?|collection|teaser)$/],
  [
    'forum',
    /forum|bbcode|cooked|^(?:messages?|thread|posts?|topic|reply|replies|answers?|question|conversation|quote|signature|sig)$/,
  ],
  ['hero', /hero|banner|jumbotron|intro|splash|^(?:lead|lede|dek|standfirst|subtitle|tagline)$/],
  ['toc', /^(?:toc|contents|tableofcontents|outline|onthispage|scrollspy)$/],
  ['faq', /faq|accordion|collaps|expand|question|answer/],
  ['search', /search/],
  [
    'hidden',
    /hidden|^(?:hide|invisible|visuallyhidden|sronly|sr|screenreader|offscreen|noscript|print|skip|skiplink)$/,
  ],
  ['form', /form|^(?:input|fields?|buttons?|btn|controls?|submit)$/],
  ['code', /code|highlight|^(?:pre|snippet|syntax|example|api|method|signature)$/],
]

export const hintNames: readonly string[] = hints.map(([name]) => name)

export const hintBit = (name: string): number => 1 << hintNames.indexOf(name)

const MAX_NAME_CHARACTERS = 300
const MAX_KEPT = 20_000

/** One bit a hint. What was found for a word is kept, for the next page uses the same. */
const ofWord = new Map<string, number>()
const ofName = new Map<string, number>()

/** The hints in the value of a `class` or `id`, as bits. */
export function hintsIn(name: string): number {
  const known = ofName.get(name)
  if (known !== undefined) return known
  let bits = 0
  const words = name
    .slice(0, MAX_NAME_CHARACTERS)
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)
  for (const word of words) if (word.length > 1) bits |= hintsOfWord(word)
  return keep(ofName, name, bits)
}

function hintsOfWord(word: string): number {
  const known = ofWord.get(word)
  if (known !== undefined) return known
  let bits = 0
  for (let at = 0; at < hints.length; at++) if (hints[at]?.[1].test(word)) bits |= 1 << at
  return keep(ofWord, word, bits)
}

function keep(map: Map<string, number>, key: string, bits: number): number {
  if (map.size >= MAX_KEPT) map.clear()
  map.set(key, bits)
  return bits
}
