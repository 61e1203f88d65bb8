/** What short blocks say on most pages that have them. Looked for in a block's beginning only. */
const phrases: [name: string, words: RegExp][] = [
  [
    'more',
    /^(?:(?:read|learn|see|view|show|load|find out|discover|explore|shop|browse)\b.{0,30}\b(?:more|all|now|less|details|collection|full)\b|more\b|next\b|previous\b|prev\b|back\b|continue\b)/i,
  ],
  [
    'share',
    /^(?:share|tweet|pin|e?mail|print|copy link|save|follow|like|facebook|twitter|linkedin|whatsapp|bookmark)\b/i,
  ],
  [
    'signup',
    /\b(?:sign ?up|subscribe|newsletter|log ?in|sign ?in|register|create (?:an )?account|inbox|unsubscribe|become a member)\b/i,
  ],
  ['legal', /©|\(c\)|copyright|all rights reserved|privacy policy|terms (?:of|and|&)|cookie/i],
  ['by', /^(?:by|written by|posted by|author|reviewed by|edited by|photo|photograph|image|credit|source|via|getty)\b/i],
  [
    'date',
    /\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.? \d{1,2}\b|\b\d{1,2} (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?,? \d{4}|\b\d{4}-\d\d-\d\d|\b\d{1,2}\/\d{1,2}\/\d{2,4}|\b(?:ago|yesterday|today)\b|min(?:ute)?s? read|\bupdated|\bpublished/i,
  ],
  [
    'cart',
    /add to (?:cart|bag|basket|wishlist|compare)|\b(?:in stock|out of stock|sold out|free shipping|quick view|buy now|checkout|quantity|sku)\b|[$€£]\s?\d/i,
  ],
  [
    'rel',
    /^(?:related|recommended|you (?:may|might) also|more (?:from|in|on|stories|like)|similar|popular|trending|latest|recent|featured|most read|people also|customers also|up next|see also|further reading|don.t miss|explore)\b/i,
  ],
  [
    'comment',
    /^(?:\d+ )?(?:comments?|repl(?:y|ies)|leave a (?:reply|comment)|post a comment|responses?|discussion|reviews?|ratings?)\b/i,
  ],
  ['ad', /^(?:ads?|advertis\w*|sponsored|promoted|affiliate)\b|may earn|commission/i],
  [
    'about',
    /^(?:about (?:the )?(?:author|us)|contact|help|faq|support|careers|press|follow us|get in touch|customer service|quick links|company|resources)\b/i,
  ],
  ['js', /javascript|browser|loading\b|enable cookies/i],
  [
    'skip',
    /^(?:skip to|jump to|menu|search|close|open|home|toggle|filter|sort|table of contents|on this page|contents)\b/i,
  ],
]

export const phraseNames: readonly string[] = phrases.map(([name]) => name)

/** Bits of the phrases that a block's beginning holds. */
export function phrasesIn(start: string): number {
  let bits = 0
  for (let at = 0; at < phrases.length; at++) if (phrases[at]?.[1].test(start)) bits |= 1 << at
  return bits
}
