import { completion, openAiStream } from './model-openai.ts'
import { openAiMistake } from './model-openai-rules.ts'
import type { FakeJson, ModelScript, ScriptedAnswer } from './model-script.ts'
import { eventStream, type FakeModel, json, startFakeModel } from './model-server.ts'

/** A tool that a backend runs itself, by the name it is declared with; undefined for a function. */
function backendTool({ type, function: declared }: FakeJson): string | undefined {
  if (type === 'builtin_function') return String((declared as FakeJson | undefined)?.name)
  return type === 'function' ? undefined : String(type)
}

const toolsOf = ({ tools }: FakeJson): FakeJson[] => (Array.isArray(tools) ? (tools as FakeJson[]) : [])
const messagesOf = ({ messages }: FakeJson): FakeJson[] => (Array.isArray(messages) ? (messages as FakeJson[]) : [])

/** The request without what only this backend knows, for the rules of the API that it speaks. */
function asPlain(body: FakeJson): FakeJson {
  const functions = toolsOf(body).filter((tool) => backendTool(tool) === undefined)
  const { tools: _tools, tool_choice: choice, ...rest } = body
  const messages = messagesOf(body).map(({ name, ...message }) =>
    message.role === 'tool' || name === undefined ? message : { name, ...message },
  )
  return { ...rest, messages, ...(functions.length > 0 && { tools: functions, tool_choice: choice ?? 'auto' }) }
}

const refusal = (message: string) => ({
  status: 400,
  message,
  body: { error: { message, type: 'invalid_request_error' } },
})

const rendered = (answer: ScriptedAnswer, body: FakeJson, round: number) =>
  body.stream === true ? eventStream(openAiStream(answer, body, round)) : json(200, completion(answer, body, round))

interface Issued {
  name: string
  text: string
  thought: string
}

/**
 * A server of Chat Completions that runs `$web_search` itself: it takes only declarations of exactly its shape, and goes
 * on only from its own calls, with the arguments to the byte, the tool's name, and what the model thought.
 */
export function fakeMoonshot(script: ModelScript, { tools = ['$web_search'] } = {}): Promise<FakeModel> {
  const issued = new Map<string, Issued>()

  function echoMistake(body: FakeJson): string | undefined {
    const messages = messagesOf(body)
    for (const [at, message] of messages.entries()) {
      for (const call of (message.tool_calls ?? []) as FakeJson[]) {
        const known = issued.get(String(call.id))
        const called = call.function as FakeJson
        if (!known || known.name !== called.name) continue
        if (called.arguments !== known.text) return `messages[${at}]: the arguments of ${known.name} were changed`
        if (typeof message.content !== 'string') return `messages[${at}]: content is missing`
        if (known.thought !== '' && message.reasoning_content !== known.thought)
          return `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${at}`
        const echo = messages.find((other) => other.role === 'tool' && other.tool_call_id === call.id)
        if (echo?.content !== known.text) return `messages[${at}]: the echo of ${known.name} differs`
        if (echo.name !== known.name) return `messages[${at}]: the echo of ${known.name} has another name`
      }
    }
    return undefined
  }

  return startFakeModel(
    {
      path: '/v1/chat/completions',
      refuse(body) {
        for (const tool of toolsOf(body)) {
          const name = backendTool(tool)
          const exact = JSON.stringify({ type: 'builtin_function', function: { name } })
          if (name !== undefined && (JSON.stringify(tool) !== exact || !tools.includes(name)))
            return refusal(`unknown tool type: ${JSON.stringify(tool)}`)
        }
        if (typeof body.tool_choice === 'object' && body.tool_choice !== null)
          if (backendTool(body.tool_choice as FakeJson) !== undefined)
            return refusal("tool_choice 'specified' is incompatible with thinking enabled")
        const mistake = echoMistake(body) ?? openAiMistake(asPlain(body), { compatible: true })
        return mistake === undefined ? undefined : refusal(mistake)
      },
      render(answer, body, round) {
        const thought = answer.says.flatMap((said) => ('thinking' in said ? said.thinking : [])).join('')
        for (const said of answer.says)
          if ('call' in said && tools.includes(said.call.name))
            issued.set(said.call.id, {
              name: said.call.name,
              text: said.call.text ?? JSON.stringify(said.call.input),
              thought,
            })
        return rendered(answer, body, round)
      },
    },
    script,
  )
}

interface VertexOptions {
  /** What it answers to an array that mixes; its search tool is taken with functions when null, in no shape when 'never'. */
  mixed?: string | null | 'never'
}

/** A proxy in front of Vertex: the search tool alone or not at all, and no name twice. */
export const fakeVertex = (
  script: ModelScript,
  { mixed = 'Multiple tools are supported only when they are all search tools.' }: VertexOptions = {},
): Promise<FakeModel> =>
  startFakeModel(
    {
      path: '/v1/chat/completions',
      refuse(body) {
        const names = toolsOf(body).map((tool) => backendTool(tool) ?? String((tool.function as FakeJson).name))
        const twice = names.find((name, at) => names.indexOf(name) < at)
        if (twice !== undefined) return refusal(`Duplicate function declaration found: ${twice}`)
        const backend = toolsOf(body).filter((tool) => backendTool(tool) !== undefined)
        const alien = backend.find((tool) => JSON.stringify(tool) !== '{"type":"web_search"}')
        if (alien !== undefined || (backend.length > 0 && mixed === 'never')) return refusal('unknown tool type')
        if (mixed !== null && backend.length > 0 && backend.length < names.length)
          return refusal(
            `litellm.BadRequestError: Vertex_aiException - ${JSON.stringify({ error: { code: 400, message: mixed } }, null, 1)}`,
          )
        const mistake = openAiMistake(asPlain(body), { compatible: true })
        return mistake === undefined ? undefined : refusal(mistake)
      },
      render: rendered,
    },
    script,
  )
