import { randomBytes } from 'node:crypto'
import type { ModelEvent } from '../../conversation/events.ts'
import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject } from '../../conversation/turn.ts'
import type { GeminiPart } from './wire.ts'

/**
 * Code that Gemini ran by itself, in the words of the dialects that have some for it: blocks of Messages, and the
 * vendor's own list in a Chat message.
 */
export function codeRuns(nextBlock: () => number) {
  let run: string | undefined

  const block = (value: JsonObject): ModelEvent[] => {
    const index = nextBlock()
    return [
      { type: 'open', index, block: { kind: 'other', dialect: 'messages', value } },
      { type: 'close', index },
    ]
  }

  return {
    code({ language, code }: NonNullable<GeminiPart['executableCode']>): ModelEvent[] {
      run = `srvtoolu_${randomBytes(12).toString('hex')}`
      const executable_code = { language: language ?? 'PYTHON', code: code ?? '' }
      const use = { type: 'server_tool_use', id: run, name: 'code_execution', input: { code: code ?? '' } }
      return [listed({ executable_code }), ...block(use)]
    },
    result({ outcome, output }: NonNullable<GeminiPart['codeExecutionResult']>): ModelEvent[] {
      const of = run ?? `srvtoolu_${randomBytes(12).toString('hex')}`
      const text = output ?? ''
      const ok = outcome === 'OUTCOME_OK'
      const content = {
        type: 'code_execution_result',
        stdout: ok ? text : '',
        stderr: ok ? '' : text,
        return_code: ok ? 0 : 1,
        content: [],
      }
      const code_execution_result = { outcome: outcome ?? 'OUTCOME_UNSPECIFIED', output: text }
      const shown = block({ type: 'code_execution_tool_result', tool_use_id: of, content })
      return [listed({ code_execution_result }), ...shown]
    },
    /** A file that a run made; undefined for one that no run did. */
    output({ mimeType, data }: NonNullable<GeminiPart['inlineData']>): ModelEvent[] {
      if (run === undefined) return []
      return [listed({ code_execution_output: { mime_type: mimeType ?? '', data: data ?? '' } })]
    },
  }
}

const listed = (entry: JsonObject): ModelEvent => ({
  type: 'extra',
  dialect: 'chat',
  value: { choices: [{ index: 0, delta: { extra_content: { google: { code_execution: [entry] } } } }] },
})

/** The same for Gemini again, as a Messages history has it; undefined for any other block. */
export function codePart(kind: string, raw: Json): JsonObject | undefined {
  if (!isObject(raw)) return undefined
  if (kind === 'server_tool_use' && raw.name === 'code_execution') {
    const code = isObject(raw.input) && typeof raw.input.code === 'string' ? raw.input.code : ''
    return { executableCode: { language: 'PYTHON', code } }
  }
  if (kind !== 'code_execution_tool_result') return undefined
  const { stdout = '', stderr = '', return_code } = isObject(raw.content) ? raw.content : {}
  const output = [stdout, stderr].filter((text) => typeof text === 'string').join('')
  return { codeExecutionResult: { outcome: return_code === 0 ? 'OUTCOME_OK' : 'OUTCOME_FAILED', output } }
}
