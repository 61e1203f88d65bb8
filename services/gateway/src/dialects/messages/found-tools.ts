import { isObject } from '../../conversation/json.ts'
import type { FoundTools, Json, JsonObject } from '../../conversation/turn.ts'
import { SERVER_TOOL_ID } from './echo.ts'

/**
 * What the searches of a conversation have found: the vendor's, this gateway's and the client's own; that a tool was
 * called says as much. Read before the gateway's blocks are taken out.
 */
export function foundTools(messages: readonly JsonObject[]): FoundTools {
  const found = { byGateway: new Set<string>(), byAnyone: new Set<string>() }
  for (const { content } of messages) {
    for (const block of objectsIn(content)) {
      if (block.type === 'tool_use') found.byAnyone.add(String(block.name))
      for (const { type, tool_name: name } of referencesIn(block)) {
        if (type !== 'tool_reference' || typeof name !== 'string') continue
        found.byAnyone.add(name)
        if (String(block.tool_use_id).startsWith(SERVER_TOOL_ID)) found.byGateway.add(name)
      }
    }
  }
  return found
}

function referencesIn({ type, content }: JsonObject): JsonObject[] {
  if (type === 'tool_result') return objectsIn(content)
  return type === 'tool_search_tool_result' && isObject(content) ? objectsIn(content.tool_references) : []
}

const objectsIn = (list: Json | undefined): JsonObject[] => (Array.isArray(list) ? list.filter(isObject) : [])
