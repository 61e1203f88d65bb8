import { Parser } from 'htmlparser2'
import { plainText } from './html/fragment.ts'
import type { Extracted } from './job.ts'
import { escapeDestination, escapeLineStart, escapeText } from './markdown/escape.ts'
import { linkUrl } from './markdown/urls.ts'

interface Entry {
  title: string
  link: string
  date: string
  summary: string
}

const MAX_ENTRIES = 200
const MAX_SUMMARY_CHARACTERS = 2_000
const MAX_DATE_CHARACTERS = 100

/** What may stand before an element: one comment, instruction or doctype at a time, each with a single way to end. */
const PROLOGUE = /\s*(?:<!--[\s\S]*?-->|<\?[^>]*\?>|<!DOCTYPE[^>]*>)/y
const FIRST_OF_FEED = /\s*<(?:rss|feed|rdf:RDF)[\s>]/y

/** Whether an XML document is an RSS or Atom feed, by its first element. */
export function isFeed(source: string): boolean {
  const head = source.slice(0, 4_096)
  PROLOGUE.lastIndex = 0
  let at = 0
  while (PROLOGUE.test(head)) at = PROLOGUE.lastIndex
  FIRST_OF_FEED.lastIndex = at
  return FIRST_OF_FEED.test(head)
}

/** A feed as a list of its entries: title, link, date and the first of what they say. */
export function readFeed(source: string, url: string): Extracted {
  const { title, entries } = parseFeed(source)
  const items = entries.map((entry) => {
    const link = linkUrl(entry.link, url)
    const name = escapeText(shortText(entry.title) || link || 'untitled', false)
    const head = link === undefined ? `## ${name}` : `## [${name}](${escapeDestination(link, false)})`
    const said = [shortText(entry.date, MAX_DATE_CHARACTERS), shortText(entry.summary)].filter((part) => part !== '')
    return [head, ...said.map((part) => escapeLineStart(escapeText(part, false)))].join('\n\n')
  })
  const heading = title === '' ? [] : [`# ${escapeText(title, false)}`]
  return { status: 'ok', kind: 'feed', text: [...heading, ...items].join('\n\n'), title, notices: [] }
}

function shortText(said: string, most = MAX_SUMMARY_CHARACTERS): string {
  const text = plainText(said)
  return text.length > most ? `${text.slice(0, most)}…` : text
}

/** Members of an entry by the names that RSS, RDF and Atom have for them; of two, the one that says more wins. */
const members: Record<string, keyof Entry> = {
  title: 'title',
  link: 'link',
  guid: 'link',
  pubdate: 'date',
  published: 'date',
  updated: 'date',
  'dc:date': 'date',
  description: 'summary',
  summary: 'summary',
  content: 'summary',
  'content:encoded': 'summary',
}

function parseFeed(source: string): { title: string; entries: Entry[] } {
  const entries: Entry[] = []
  const feed = { title: '' }
  let entry: Entry | undefined
  let member: keyof Entry | undefined
  let text = ''
  let depth = 0
  const parser = new Parser(
    {
      onopentag(rawName, attributes) {
        depth++
        const name = rawName.toLowerCase()
        if (name === 'item' || name === 'entry') {
          entry = entries.length < MAX_ENTRIES ? { title: '', link: '', date: '', summary: '' } : undefined
          member = undefined
          return
        }
        if (member) return
        member = members[name]
        text = ''
        if (name === 'link' && entry && attributes.href && (attributes.rel ?? 'alternate') === 'alternate')
          entry.link ||= attributes.href
      },
      ontext(piece) {
        if (member && text.length < 50_000) text += piece
      },
      onclosetag(rawName) {
        depth--
        const name = rawName.toLowerCase()
        if (name === 'item' || name === 'entry') {
          if (entry) entries.push(entry)
          entry = undefined
        } else if (members[name] !== undefined && member === members[name]) {
          const value = text.trim()
          if (entry) entry[member] = member === 'summary' ? longer(entry.summary, value) : entry[member] || value
          else if (member === 'title' && depth <= 2) feed.title ||= value
          member = undefined
        }
      },
    },
    { xmlMode: true, decodeEntities: true },
  )
  for (let at = 0; at < source.length && depth < MAX_DEPTH && entries.length < MAX_ENTRIES; at += CHUNK_CHARACTERS) {
    parser.write(source.slice(at, at + CHUNK_CHARACTERS))
  }
  return { title: shortText(feed.title), entries }
}

/** No feed is nested so deep, and the parser's own bookkeeping grows with the square of it. */
const MAX_DEPTH = 64
const CHUNK_CHARACTERS = 16 * 1024

const longer = (one: string, other: string): string => (other.length > one.length ? other : one)
