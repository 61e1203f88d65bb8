import type { ToolRefusal } from './upstream-fault.ts'

/** Without its full stop, which proxies lose. */
const MIXED = 'Multiple tools are supported only when they are all search tools'
const DUPLICATE = /Duplicate function declaration found: ([$\w.-]{1,64})/

/** Reads it from anywhere in the body: proxies wrap the error of the backend into text of their own. */
export function toolRefusalIn(body: unknown): ToolRefusal | undefined {
  const text = JSON.stringify(body) ?? ''
  if (text.includes(MIXED)) return { type: 'mixed' }
  const name = DUPLICATE.exec(text)?.[1]?.replace(/\.$/, '')
  return name === undefined ? undefined : { type: 'duplicate', name }
}
