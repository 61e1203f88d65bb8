import type { Json, Message } from '../conversation/turn.ts'
import type { GatewaySettings } from '../settings.ts'
import type { BuiltIn } from '../tools/tool.ts'
import type { Owned } from './plan.ts'

const BUILT_IN_HEADER = 'You have access to the following tools:'

/** What each built-in that runs here is for. */
export const hintLines = (owned: Iterable<Owned<BuiltIn>>, settings: GatewaySettings): string[] =>
  Array.from(owned, ({ tool, options }) => `- ${tool.name}: ${options.hint ?? tool.hint(settings)}`)

/** The block that tells the model what the tools that run here are for (T-29). */
export const hintBlock = (lines: readonly string[], settings: GatewaySettings, header: string | undefined): string =>
  [header?.trim() || settings.toolsHeader || BUILT_IN_HEADER, ...lines].join('\n')

/**
 * Chat appends to a first system message; the other dialects prepend to theirs, which in Responses is what came as
 * `instructions` and no item of its input (T-29). Where there is none, one is made.
 */
export function withHints(messages: Message[], block: string, place: 'append' | 'prepend'): Message[] {
  const [first, ...rest] = messages
  if (first?.role !== 'system' || isItem(first)) return [systemMessage(block), ...messages]
  const part = { type: 'text', text: block } as const
  const parts = place === 'append' ? [...first.parts, part] : [part, ...first.parts]
  return [
    { ...first, parts, ...(first.raw && { raw: { ...first.raw, value: grown(first.raw.value, block, place) } }) },
    ...rest,
  ]
}

const isItem = ({ raw }: Message): boolean => raw?.dialect === 'responses' && raw.value.role !== 'system'

export const systemMessage = (text: string): Message => ({ role: 'system', parts: [{ type: 'text', text }] })

/** The wire form grows with the parts, so that members we know nothing of stay where they were. */
function grown<T extends { [name: string]: Json }>(value: T, block: string, place: 'append' | 'prepend'): T {
  const { content } = value
  if (Array.isArray(content)) {
    const part = { type: 'text', text: block }
    return { ...value, content: place === 'append' ? [...content, part] : [part, ...content] }
  }
  const text = typeof content === 'string' ? content : ''
  const whole = place === 'append' ? [text, block] : [block, text]
  return { ...value, content: whole.filter((piece) => piece !== '').join('\n\n') }
}
