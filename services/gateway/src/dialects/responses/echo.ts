import type { JsonObject } from '../../conversation/turn.ts'
import { isGatewayCode, isGatewaySearch, isMinted } from './ids.ts'
import type { InputItem, ItemOf } from './input-item.ts'
import { isSealed } from './reasoning.ts'

/**
 * What a provider of this dialect is sent for an item of the history: one it made goes back as it came. Of
 * ours, code becomes words and a search is left out; ids and reasoning that only this gateway can read are removed.
 */
export function wireForm(read: InputItem, wire: JsonObject): JsonObject | undefined {
  if (isGatewaySearch(wire.id)) return undefined
  if (read.form === 'code_interpreter_call' && isGatewayCode(wire.id)) return spoken(codeText(read.item))
  if (read.form === 'reasoning' && isSealed(wire.encrypted_content)) return undefined
  if (!isMinted(wire.id)) return wire
  const { id: _ours, ...rest } = wire
  return rest
}

const spoken = (text: string): JsonObject => ({
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text }],
})

/** A run of code, for a model that did not run it. */
export function codeText({ code, outputs }: ItemOf<'code_interpreter_call'>): string {
  const logs = (outputs ?? []).map((output) => output.logs ?? '').join('')
  return `I ran this code:\n${code ?? ''}\nOutput:\n${logs}`
}
