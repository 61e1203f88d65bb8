import type { Dialect } from '../conversation/turn.ts'
import { type Vendor, vendorOf } from '../models/presets.ts'
import { dialectOfWire } from '../models/provider.ts'
import type { ResolvedModel } from '../models/registry.ts'
import type { SeatTools } from '../models/seats.ts'
import { codeExecution } from '../tools/code-execution.ts'
import type { BuiltIn } from '../tools/tool.ts'
import { webFetch } from '../tools/web-fetch.ts'
import { webSearch } from '../tools/web-search.ts'

/** Provider keywords a tool of ours can stand in for (T-31). Any other type is the provider's alone. */
const keywords: { pattern: RegExp; tool: BuiltIn }[] = [
  { pattern: /^web_search(_\d{8})?$/, tool: webSearch },
  { pattern: /^web_search_preview(_\d{4}_\d{2}_\d{2})?$/, tool: webSearch },
  { pattern: /^web_fetch_\d{8}$/, tool: webFetch },
  { pattern: /^code_execution(_\d{8})?$/, tool: codeExecution },
  { pattern: /^code_interpreter$/, tool: codeExecution },
]

export const toolForKeyword = (type: string): BuiltIn | undefined =>
  keywords.find(({ pattern }) => pattern.test(type))?.tool

/** Where one attempt goes. */
export interface Target {
  vendor: Vendor
  model: string
  /** The client dialect its wire is; undefined when it speaks none of them. */
  dialect: Dialect | undefined
  /** What its backend runs by itself; absent where that is nothing. */
  seat?: SeatTools | undefined
}

export const targetOf = ({ provider: { name, wire }, model, type, seat }: ResolvedModel): Target => ({
  vendor: vendorOf(name, type),
  model,
  dialect: dialectOfWire[wire],
  seat,
})

interface NativePair {
  keyword: RegExp
  dialect: Dialect
  vendor: Vendor
  model?: RegExp
}

/** The only pairs a provider runs by itself (S-05, F-03, X-15, X-19). */
const nativePairs: NativePair[] = [
  { keyword: /^web_search_\d{8}$/, dialect: 'messages', vendor: 'anthropic' },
  { keyword: /^web_search_\d{8}$/, dialect: 'messages', vendor: 'deepseek' },
  { keyword: /^web_search(_preview(_\d{4}_\d{2}_\d{2})?)?$/, dialect: 'responses', vendor: 'openai' },
  { keyword: /^web_search$/, dialect: 'responses', vendor: 'deepseek', model: /^deepseek-v4-pro$/ },
  { keyword: /^web_fetch_\d{8}$/, dialect: 'messages', vendor: 'anthropic' },
  { keyword: /^code_execution_\d{8}$/, dialect: 'messages', vendor: 'anthropic' },
  { keyword: /^tool_search_tool_(regex|bm25)(_\d{8})?$/, dialect: 'messages', vendor: 'anthropic' },
  { keyword: /^code_interpreter$/, dialect: 'responses', vendor: 'openai' },
  { keyword: /^code_execution$/, dialect: 'chat', vendor: 'gemini' },
  { keyword: /^code_execution(_\d{8})?$/, dialect: 'messages', vendor: 'gemini' },
]

/** Whether the target's model runs the keyword itself in the dialect the client speaks. */
export const runsNatively = (keyword: string, dialect: Dialect, target: Target): boolean =>
  nativePairs.some(
    (pair) =>
      pair.keyword.test(keyword) &&
      pair.dialect === dialect &&
      pair.vendor === target.vendor &&
      (pair.model === undefined || pair.model.test(target.model)),
  )
