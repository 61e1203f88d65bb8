import { Tokenizer, type TokenizerCallbacks } from 'htmlparser2'
import { openCpuClock } from '../cpu-clock.ts'
import { isTablePart, openElements } from './open-elements.ts'
import { known, TEXT, tagNumber, tagSet } from './tags.ts'
import { append, emptyTree, isKeptAttribute, JSON_LD_CHARACTERS, LIMITS, noAttributes, type Tree } from './tree.ts'

const SCRIPT = known('script')
const TITLE = known('title')
const SVG = known('svg')
const SELECT = known('select')
const TEMPLATE = known('template')

/** Their contents are no text of the page, and nothing asks about them. */
const isDropped = tagSet('style template svg iframe object canvas applet map datalist noframes noembed textarea select')
/** HTML in an SVG ends it (HTML 13.2.6.5). */
const endsSvg = tagSet('body br center dd div dl dt h1 h2 h3 h4 h5 h6 head hr img li menu ol p pre table ul')

const CHUNK_CHARACTERS = 64 * 1024

/**
 * Reads HTML as browsers do where it matters to text: implied ends, misnested and unclosed elements, raw text. The limits
 * hold whatever the source: elements beyond the depth limit become siblings, and after the others, or `budgetMs` of
 * processor time, the rest of the source is left unread.
 */
export function parseHtml(html: string, budgetMs: number): Tree {
  // In HTML a CDATA section is a comment that ends at the next `>`; the tokenizer would look for `]]>`.
  const source = html.replaceAll('<![CDATA[', '<!-CDATA[')
  const builder = treeBuilder(source)
  const { tree } = builder
  const tokenizer = new Tokenizer({ decodeEntities: true }, builder)
  const cpuMs = openCpuClock()
  for (let at = 0; at < source.length && !tree.truncated; at += CHUNK_CHARACTERS) {
    if (cpuMs() > budgetMs) tree.truncated = true
    else tokenizer.write(source.slice(at, at + CHUNK_CHARACTERS))
  }
  tokenizer.end()
  builder.finish()
  return tree
}

/** Makes the tree from tokens, which name their places in `source`. */
function treeBuilder(source: string): TokenizerCallbacks & { tree: Tree; finish(): void } {
  const tree = emptyTree()
  const open = openElements(tree)
  let text = ''
  /** A stretch of the source that belongs to the text and is not in it yet: pieces that touch are taken as one. */
  let from = 0
  let to = 0
  let elements = 0
  /** The dropped element that is open, and how many of its kind are. */
  let dropped = -1
  let droppedDepth = 0
  /** The raw element that is open, and its text. */
  let raw: 'title' | 'json' | 'script' | undefined
  let rawText = ''
  let jsonCharacters = 0

  let tag = TEXT
  let attributes: { [name: string]: string; type?: string; shadowrootmode?: string } | undefined
  let attributeCount = 0
  let name = ''
  let value: string | undefined

  const takeStretch = (): void => {
    if (to > from) add(source.slice(from, to))
    from = to = 0
  }
  const add = (piece: string): void => {
    if (raw) rawText += piece
    else if (dropped < 0 && !tree.truncated) text += piece
  }
  const flushText = (): void => {
    if (text !== '' && tree.size < LIMITS.nodes) append(tree, open.top(), TEXT, text, noAttributes)
    text = ''
  }

  const openTag = (isSelfClosing: boolean): void => {
    if (dropped === SVG && endsSvg[tag]) dropped = -1
    if (dropped >= 0) {
      if (tag === dropped && !isSelfClosing) droppedDepth++
    } else if (tag === SCRIPT || tag === TITLE) {
      raw = tag === TITLE ? 'title' : attributes?.type?.toLowerCase().includes('ld+json') ? 'json' : 'script'
      rawText = ''
      if (tag === SCRIPT) tree.scripts++
    } else if (isDropped[tag] && !(tag === TEMPLATE && attributes?.shadowrootmode !== undefined)) {
      flushText()
      if (isSelfClosing) return
      dropped = tag
      droppedDepth = 1
    } else if (++elements > LIMITS.elements || tree.size >= LIMITS.nodes) {
      tree.truncated = true
    } else {
      flushText()
      open.start(tag, attributes ?? noAttributes)
    }
  }

  const closeTag = (closing: number): void => {
    if (raw) endRaw()
    else if (dropped >= 0) {
      if (closing === dropped) droppedDepth--
      // Inside a select only options are closed: any other end tag says that it was never closed itself.
      if (droppedDepth === 0 || (dropped === SELECT && isTablePart[closing])) dropped = -1
    } else if (closing !== SCRIPT && closing !== TITLE && !isDropped[closing]) {
      flushText()
      open.finish(closing)
    }
  }

  const endRaw = (): void => {
    if (raw === 'title' && tree.title === '') tree.title = rawText
    else if (raw === 'json' && jsonCharacters + rawText.length <= JSON_LD_CHARACTERS) {
      jsonCharacters += rawText.length
      tree.jsonLd.push(rawText)
    } else if (raw === 'script') tree.scriptCharacters += rawText.length
    raw = undefined
    rawText = ''
  }

  return {
    tree,
    onopentagname(start, end) {
      takeStretch()
      tag = tagNumber(source.slice(start, end).toLowerCase())
      attributes = undefined
      attributeCount = 0
    },
    onattribname(start, end) {
      value = undefined
      if (dropped >= 0 || attributeCount >= LIMITS.attributes) return
      name = source.slice(start, end).toLowerCase()
      if (isKeptAttribute(name)) value = ''
    },
    onattribdata(start, end) {
      if (value === undefined) return
      const room = LIMITS.valueCharacters - value.length
      if (room > 0) value += source.slice(start, Math.min(end, start + room))
    },
    onattribentity(codepoint) {
      if (value !== undefined && value.length < LIMITS.valueCharacters) value += String.fromCodePoint(codepoint)
    },
    onattribend() {
      if (value === undefined) return
      attributes ??= {}
      if (name in attributes) return
      attributes[name] = value
      attributeCount++
    },
    onopentagend: () => openTag(false),
    onselfclosingtag: () => openTag(true),
    onclosetag(start, end) {
      takeStretch()
      closeTag(tagNumber(source.slice(start, end).toLowerCase()))
    },
    ontext(start, end) {
      if (start !== to) {
        takeStretch()
        from = start
      }
      to = end
    },
    ontextentity(codepoint) {
      takeStretch()
      add(String.fromCodePoint(codepoint))
    },
    oncdata() {},
    oncomment() {},
    ondeclaration() {},
    onprocessinginstruction() {},
    onend() {},
    finish() {
      takeStretch()
      endRaw()
      flushText()
      open.closeAll()
    },
  }
}
