import type { JsonObject } from '../conversation/turn.ts'
import type { Capabilities } from './capabilities.ts'
import { codeExecution } from './code-execution.ts'
import type { BuiltIn } from './tool.ts'
import { webFetch } from './web-fetch.ts'
import { webSearch } from './web-search.ts'

/** Every tool of this gateway's own, in the order they are listed. */
export const tools: readonly BuiltIn[] = [webSearch, webFetch, codeExecution]

const byType = new Map(tools.map((tool) => [tool.type, tool]))

export const toolOfType = (type: string): BuiltIn | undefined => byType.get(type)

export interface ToolDescription {
  id: string
  object: 'tool'
  description: string
  available: boolean
  accepted_types: string[]
  input_schema: JsonObject
  example: { type: string }
}

/** Entries of `GET /api/v1/tools`: a tool that cannot run here is listed as such, never left out (T-05, T-06). */
export const describeTools = (capabilities: Capabilities): ToolDescription[] =>
  tools.map((tool) => ({
    id: tool.type,
    object: 'tool',
    description: tool.description,
    available: tool.available(capabilities),
    accepted_types: tool.acceptedTypes(capabilities),
    input_schema: tool.parameters,
    example: { type: tool.type },
  }))
