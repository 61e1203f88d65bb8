import { fitBytes } from './extract/text.ts'

/** A part of a text, counted in Unicode code points (WM-31). */
export interface TextWindow {
  text: string
  offset: number
  totalChars: number
  /** Where the next window begins, when anything is left. */
  nextOffset?: number
}

export interface WindowWanted {
  offset: number
  maxChars?: number | undefined
  /** UTF-8; a window holds a code point at least, so that whoever walks a text gets to its end. */
  maxBytes: number
}

/**
 * The window, or undefined when it would begin past the end (WM-33). All windows, each begun where the last said, are the
 * whole text exactly (WM-32).
 */
export function openWindow(text: string, { offset, maxChars, maxBytes }: WindowWanted): TextWindow | undefined {
  const totalChars = countCodePoints(text)
  if (offset > totalChars) return undefined
  const start = skip(text, 0, offset)
  const end = maxChars === undefined ? text.length : skip(text, start, maxChars)
  const fitting = fitBytes(text.slice(start, end), maxBytes).text
  const shown = fitting === '' ? text.slice(start, skip(text, start, 1)) : fitting
  const next = offset + countCodePoints(shown)
  return { text: shown, offset, totalChars, ...(next < totalChars ? { nextOffset: next } : {}) }
}

const isHigh = (unit: number): boolean => (unit & 0xfc00) === 0xd800
const isLow = (unit: number): boolean => (unit & 0xfc00) === 0xdc00

/** Index after `count` code points from `start`, or the text's end. */
function skip(text: string, start: number, count: number): number {
  let at = start
  for (let left = count; left > 0 && at < text.length; left--) {
    at += isHigh(text.charCodeAt(at)) && isLow(text.charCodeAt(at + 1)) ? 2 : 1
  }
  return at
}

export function countCodePoints(text: string): number {
  let pairs = 0
  for (let at = 1; at < text.length; at++) {
    if (isLow(text.charCodeAt(at)) && isHigh(text.charCodeAt(at - 1))) pairs++
  }
  return text.length - pairs
}
