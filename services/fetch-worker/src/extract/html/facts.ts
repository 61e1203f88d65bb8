import type { PageFacts } from '@tollgate/contracts'
import { linkUrl } from '../markdown/urls.ts'
import { plainText } from './fragment.ts'
import type { Structured } from './main/structured.ts'
import { known } from './tags.ts'
import { type Tree, textOf } from './tree.ts'

const META = known('meta')
const LINK = known('link')
const TIME = known('time')
const HTML = known('html')
const H1 = known('h1')

const MAX_CHARACTERS = 500
const MAX_SAID = 5_000

/** What a page says of itself in its head, in marked-up parts of its body and in JSON-LD, which is the most exact of them. */
export function factsOf(tree: Tree, base: string, structured: Structured): PageFacts {
  const said = collect(tree)
  const site =
    line(said.meta.get('og:site_name')) ?? told(structured.siteName) ?? line(said.meta.get('application-name'))
  const published = [
    structured.published,
    ...publishedNames.map((name) => said.meta.get(name)),
    said.marked.get('datePublished'),
    said.time,
  ].map((date) => isoDate(date))
  const facts: { [Name in keyof PageFacts]: PageFacts[Name] | undefined } = {
    headline: headlineOf(tree, said, structured, site),
    byline: bylineOf(said, structured),
    published: published.find((date) => date !== undefined),
    language: languageTag(said.language ?? said.meta.get('content-language') ?? said.meta.get('og:locale')),
    canonicalUrl: webUrl(said.canonical ?? said.meta.get('og:url'), base),
    siteName: site,
    description: line(said.meta.get('og:description') ?? said.meta.get('description')) ?? told(structured.description),
  }
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined))
}

const publishedNames = [
  'article:published_time',
  'datepublished',
  'date',
  'pubdate',
  'publishdate',
  'dc.date',
  'dc.date.issued',
  'dcterms.date',
  'parsely-pub-date',
  'sailthru.date',
]

interface Said {
  /** `<meta>` by name or property, the first of each. */
  meta: Map<string, string>
  /** Text or value of elements with an `itemprop`. */
  marked: Map<string, string>
  canonical: string | undefined
  language: string | undefined
  time: string | undefined
  h1: string[]
  author: string | undefined
}

function collect(tree: Tree): Said {
  const said: Said = {
    meta: new Map(),
    marked: new Map(),
    canonical: undefined,
    language: undefined,
    time: undefined,
    h1: [],
    author: undefined,
  }
  for (let node = 1; node < tree.size; node++) {
    const tag = tree.tag[node]
    const {
      name,
      property,
      content,
      rel,
      href,
      itemprop,
      datetime,
      lang,
      'http-equiv': equivalent,
    } = tree.attributes[node] as Readonly<Record<string, string | undefined>>
    if (tag === META) {
      const key = (property ?? name ?? equivalent)?.toLowerCase()
      if (key && content?.trim() && !said.meta.has(key)) said.meta.set(key, content)
    } else if (tag === LINK && rel?.toLowerCase() === 'canonical') said.canonical ??= href
    else if (tag === HTML) said.language ??= lang
    else if (tag === TIME) said.time ??= datetime
    else if (tag === H1 && said.h1.length < 2) said.h1.push(textOf(tree, node, MAX_CHARACTERS))
    if (itemprop === 'datePublished' || itemprop === 'author') {
      const value = content ?? datetime ?? textOf(tree, node, MAX_CHARACTERS)
      if (!said.marked.has(itemprop) && value) said.marked.set(itemprop, value)
    }
    if (rel === 'author') said.author ??= textOf(tree, node, MAX_CHARACTERS)
  }
  return said
}

/** The page's own heading: a title without the name of the site, which is only taken off where the page names its site. */
function headlineOf(tree: Tree, said: Said, structured: Structured, site: string | undefined): string | undefined {
  const [onlyH1, secondH1] = said.h1
  const heading = secondH1 === undefined ? onlyH1 : undefined
  const title = told(structured.headline) ?? line(said.meta.get('og:title') ?? heading ?? tree.title)
  if (title === undefined || site === undefined) return title
  const end = new RegExp(`\\s+[|–—·•:»-]+\\s+${site.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')}$`, 'i')
  return title.replace(end, '') || title
}

function bylineOf(said: Said, structured: Structured): string | undefined {
  const named = [said.meta.get('author'), said.meta.get('article:author'), said.marked.get('author'), said.author]
  const found = [told(structured.author), ...named.map(line)].find(
    (name) => name !== undefined && !/^https?:|@/.test(name),
  )
  const name = found?.replace(/^(?:written |posted )?by:?\s+/i, '')
  return name !== undefined && name.length > 1 && name.length <= 200 ? name : undefined
}

const line = (text: string | undefined): string | undefined => {
  const found = text?.slice(0, MAX_SAID).replace(/\s+/g, ' ').trim().slice(0, MAX_CHARACTERS)
  return found === '' ? undefined : found?.toWellFormed()
}

/** What JSON-LD says is often HTML, escaped once more. */
const told = (text: string | undefined): string | undefined =>
  text === undefined ? undefined : line(plainText(text.slice(0, MAX_SAID)))

/** A date as ISO 8601 has it, with its time where one is given; undefined for one that is none. */
function isoDate(said: string | undefined): string | undefined {
  const text = said?.trim().slice(0, 60)
  if (!text) return undefined
  const iso = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)\s?(Z|[+-]\d\d:?\d\d)?)?$/.exec(text)
  if (iso) {
    const [, day = '', time, zone = ''] = iso
    const written = time === undefined ? day : `${day}T${time}${zone.replace(/^([+-]\d\d)(\d\d)$/, '$1:$2')}`
    return Number.isNaN(Date.parse(written)) ? undefined : written
  }
  // Without a zone a time is no moment: only its day is sure.
  const day = /\d{4}/.test(text) ? Date.parse(`${text.replace(/,?\s*\d{1,2}:\d\d.*$/, '')} UTC`) : Number.NaN
  return Number.isNaN(day) ? undefined : new Date(day).toISOString().slice(0, 10)
}

function languageTag(said: string | undefined): string | undefined {
  const tag = said?.split(/[,;\s]/)[0]?.replaceAll('_', '-')
  return tag !== undefined && /^[a-z]{2,3}(?:-[a-z0-9]{2,8}){0,3}$/i.test(tag) ? tag : undefined
}

function webUrl(reference: string | undefined, base: string): string | undefined {
  const url = linkUrl(reference, base)
  return url !== undefined && /^https?:/.test(url) ? url : undefined
}
