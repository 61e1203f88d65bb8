import type { FakeJson } from './model-script.ts'

export interface GeminiRules {
  /** Signatures this server has given out. */
  signatures: ReadonlySet<string>
  /** The first call of every step of the model must be signed. */
  signs: boolean
}

const MEMBERS = new Set([
  'contents',
  'systemInstruction',
  'tools',
  'toolConfig',
  'generationConfig',
  'safetySettings',
  'cachedContent',
])
const CONFIG = new Set(
  `candidateCount frequencyPenalty logprobs maxOutputTokens mediaResolution presencePenalty responseJsonSchema
  responseLogprobs responseMimeType responseModalities responseSchema seed speechConfig stopSequences temperature
  thinkingConfig topK topP`.split(/\s+/),
)
const THINKING = new Set(['includeThoughts', 'thinkingBudget', 'thinkingLevel'])
const PARTS = [
  'text',
  'inlineData',
  'fileData',
  'functionCall',
  'functionResponse',
  'executableCode',
  'codeExecutionResult',
]
const PART_MEMBERS = new Set([...PARTS, 'thought', 'thoughtSignature', 'videoMetadata', 'mediaResolution'])
/** What the vendor takes of JSON Schema. */
const SCHEMA = new Set(
  `$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum anyOf oneOf
  properties additionalProperties required propertyOrdering`.split(/\s+/),
)
/** Stands for the signature of a call that the vendor's model did not make. */
const UNSIGNED = 'skip_thought_signature_validator'

/** What the vendor would answer a 400 for; undefined when the request is in order. */
export function geminiMistake(body: FakeJson, rules: GeminiRules): string | undefined {
  return (
    unknownName(body, MEMBERS, 'request') ??
    contentsMistake(body.contents, rules) ??
    instructionMistake(body.systemInstruction) ??
    toolsMistake(body) ??
    configMistake((body.generationConfig ?? {}) as FakeJson)
  )
}

function unknownName(value: FakeJson, known: ReadonlySet<string>, at: string): string | undefined {
  const unknown = Object.keys(value).find((name) => !known.has(name))
  return unknown && `Invalid JSON payload received. Unknown name "${unknown}" at '${at}': Cannot find field.`
}

function contentsMistake(contents: unknown, rules: GeminiRules): string | undefined {
  if (!Array.isArray(contents) || contents.length === 0)
    return '* GenerateContentRequest.contents: contents is not specified'
  const all = contents as { role?: string; parts?: FakeJson[] }[]
  for (const [i, { role, parts }] of all.entries()) {
    if (role !== 'user' && role !== 'model') return 'Please use a valid role: user, model.'
    if (!Array.isArray(parts) || parts.length === 0)
      return `* GenerateContentRequest.contents[${i}].parts: contents.parts must not be empty.`
    for (const part of parts) {
      const mistake = unknownName(part, PART_MEMBERS, `contents[${i}].parts`) ?? partMistake(part, role, rules)
      if (mistake) return mistake
    }
    const calls = parts.flatMap(({ functionCall }) => (functionCall ? [functionCall as FakeJson] : []))
    const answers = (all[i + 1]?.parts ?? []).flatMap(({ functionResponse: one }) => (one ? [one as FakeJson] : []))
    const unsigned = rules.signs && parts.find((part) => part.functionCall)?.thoughtSignature === undefined
    if (calls.length > 0 && unsigned)
      return `Function call is missing a thought_signature in functionCall parts, position ${i + 1}.`
    if (calls.length !== answers.length)
      return 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.'
    if (calls.some(({ name, id }, at) => answers[at]?.name !== name || answers[at]?.id !== id))
      return 'Please ensure that function response turn comes immediately after a function call turn.'
  }
  return all[0]?.role === 'user'
    ? undefined
    : 'Please ensure that function call turn comes immediately after a user turn.'
}

function partMistake(part: FakeJson, role: string, { signatures }: GeminiRules): string | undefined {
  const kinds = PARTS.filter((kind) => part[kind] !== undefined)
  if (kinds.length !== 1) return 'contents.parts.data: required oneof field must have one initialized field'
  const {
    thoughtSignature: signature,
    functionCall,
    functionResponse,
    text,
  } = part as Record<string, FakeJson | undefined>
  if (signature !== undefined && String(signature) !== UNSIGNED && !signatures.has(String(signature)))
    return 'Corrupted thought signature.'
  if (text !== undefined && String(text) === '' && signature === undefined)
    return 'Unable to submit request because it must have a text parameter.'
  if (functionCall && (role !== 'model' || typeof functionCall.name !== 'string'))
    return 'Function call name cannot be empty.'
  if (functionResponse) {
    if (role !== 'user' || !functionResponse.name) return 'function_response.name: Name cannot be empty.'
    if (typeof functionResponse.response !== 'object') return 'function_response.response: must be a Struct'
  }
  return undefined
}

function instructionMistake(instruction: unknown): string | undefined {
  if (instruction === undefined) return undefined
  const parts = (instruction as { parts?: FakeJson[] }).parts ?? []
  return parts.length > 0 && parts.every(({ text }) => typeof text === 'string' && text !== '')
    ? undefined
    : 'system_instruction.parts: must be text'
}

function toolsMistake({ tools, toolConfig }: FakeJson): string | undefined {
  const names = new Set<unknown>()
  for (const tool of (tools ?? []) as FakeJson[]) {
    const mistake = unknownName(
      tool,
      new Set(['functionDeclarations', 'codeExecution', 'googleSearch', 'urlContext']),
      'tools',
    )
    if (mistake) return mistake
    for (const one of (tool.functionDeclarations ?? []) as FakeJson[]) {
      const odd = unknownName(
        one,
        new Set(['name', 'description', 'parameters', 'parametersJsonSchema']),
        'function_declarations',
      )
      if (odd) return odd
      if (typeof one.name !== 'string' || !/^[a-zA-Z_][\w.:-]{0,63}$/.test(one.name)) return 'Invalid function name.'
      if (names.has(one.name)) return `Duplicate function declaration found: ${one.name}`
      names.add(one.name)
      const wrong = one.parametersJsonSchema === undefined ? undefined : schemaMistake(one.parametersJsonSchema)
      if (wrong) return wrong
    }
  }
  const { mode, allowedFunctionNames: allowed = [] } = ((toolConfig as FakeJson | undefined)?.functionCallingConfig ??
    {}) as FakeJson
  if (mode !== undefined && !['AUTO', 'ANY', 'NONE', 'VALIDATED'].includes(String(mode)))
    return 'Invalid value at mode.'
  const stranger = (allowed as string[]).find((name) => !names.has(name))
  return stranger && `allowed_function_names: ${stranger} is not declared.`
}

function configMistake(config: FakeJson): string | undefined {
  const thinking = (config.thinkingConfig ?? {}) as FakeJson
  if (thinking.thinkingBudget !== undefined && thinking.thinkingLevel !== undefined)
    return 'You can only set only one of thinking budget and thinking level.'
  if (config.responseJsonSchema !== undefined && config.responseMimeType !== 'application/json')
    return 'response_mime_type: must be application/json for a response schema.'
  return (
    unknownName(config, CONFIG, 'generation_config') ??
    unknownName(thinking, THINKING, 'generation_config.thinking_config') ??
    (config.responseJsonSchema === undefined ? undefined : schemaMistake(config.responseJsonSchema))
  )
}

function schemaMistake(schema: unknown): string | undefined {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return undefined
  const { properties, $defs, items, anyOf, ...rest } = schema as FakeJson
  const odd = unknownName(rest, SCHEMA, 'schema')
  if (odd) return odd
  const children = [
    ...Object.values(properties ?? {}),
    ...Object.values($defs ?? {}),
    items,
    ...((anyOf ?? []) as unknown[]),
  ]
  return children.map(schemaMistake).find((mistake) => mistake !== undefined)
}
