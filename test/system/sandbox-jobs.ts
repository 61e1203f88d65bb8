import { setTimeout as sleep } from 'node:timers/promises'
import type { Deployment } from './deployment.ts'

/** How a request that runs code ended, as its client saw it. */
export type Ending =
  /** What the program had to say, whole. */
  | { kind: 'ran'; container: string | undefined }
  /** A status, an error in the stream, or a tool's error that the model was told of. */
  | { kind: 'told'; status: number; detail: string }
  /** Neither: the text is what came in its place. */
  | { kind: 'unclear'; text: string }
  /** The connection was refused or broke off. */
  | { kind: 'cut' }
  /** No end within its time. */
  | { kind: 'hung' }

export interface Job {
  /** Python that has one thing to say. */
  code: string
  says: string
  /** `auto`, or the id of the container to run in. */
  container?: string | undefined
  stream: boolean
}

export interface Doors {
  /** Without a model. */
  direct(job: Job): Promise<Ending>
  /** Through a conversation with the scripted model, which runs what it is given and repeats what came of it. */
  chat(job: Job): Promise<Ending>
}

/** Both ways to the sandbox, for one user; longer than `patienceMs` is a hang. */
export function openDoors({ url }: Pick<Deployment, 'url'>, key: string, patienceMs: number): Doors {
  async function post(path: string, body: object, read: (answer: Answer) => Ending): Promise<Ending> {
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), patienceMs)
    try {
      const response = await fetch(url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: late.signal,
      })
      const text = await response.text()
      const container = response.headers.get('otari-container-id') ?? undefined
      if (response.status !== 200) return refusalIn(response.status, text)
      return read({ text, container })
    } catch {
      return { kind: late.signal.aborted ? 'hung' : 'cut' }
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    direct: ({ code, says, container, stream }) =>
      post('/api/v1/code-execution', { code, container, stream, timeout_seconds: 10 }, (answer) =>
        stream ? streamedRun(answer, says) : runIn(answer.text, answer, says),
      ),
    chat: ({ code, says, container, stream }) =>
      post(
        '/api/v1/chat/completions',
        {
          model: 'demo:tools',
          messages: [{ role: 'user', content: `\`\`\`python\n${code}\n\`\`\`` }],
          tools: [{ type: 'otari_code_execution', container }],
          stream,
        },
        (answer) => (stream ? streamedAnswer(answer, says) : answerIn(contentOf(answer.text), answer, says)),
      ),
  }
}

interface Answer {
  text: string
  container: string | undefined
}

const unclear = (text: string): Ending => ({ kind: 'unclear', text: text.slice(0, 500) })

/** The documented form of a refusal: `{"detail": "…"}`. */
function refusalIn(status: number, text: string): Ending {
  const { detail } = parsed(text)
  return typeof detail === 'string' && detail !== '' ? { kind: 'told', status, detail } : unclear(`${status} ${text}`)
}

function runIn(text: string, { container }: Answer, says: string): Ending {
  const { object, stdout, return_code } = parsed(text)
  return object === 'code_execution' && stdout === `${says}\n` && return_code === 0
    ? { kind: 'ran', container }
    : unclear(text)
}

function streamedRun(answer: Answer, says: string): Ending {
  const [, event, data = ''] = /event: (result|error)\ndata: (.*)\n\n$/.exec(answer.text) ?? []
  if (event === 'result') return runIn(data, answer, says)
  return event === 'error' ? refusalIn(Number(parsed(data).status), data) : unclear(answer.text)
}

function answerIn(content: string | undefined, { container, text }: Answer, says: string): Ending {
  const [, detail] = /^code_execution: \[tool error\] (.+)$/.exec(content ?? '') ?? []
  if (detail !== undefined) return { kind: 'told', status: 200, detail }
  return content === `code_execution: stdout:\n${says}\n` ? { kind: 'ran', container } : unclear(text)
}

function streamedAnswer(answer: Answer, says: string): Ending {
  const frames = answer.text.split('\n\n').flatMap((frame) => (frame.startsWith('data: {') ? [frame.slice(6)] : []))
  if (frames.some((frame) => 'error' in parsed(frame))) {
    return { kind: 'told', status: 200, detail: 'an error in the stream' }
  }
  if (!answer.text.endsWith('data: [DONE]\n\n')) return unclear(answer.text)
  const pieces = frames.map((frame) => (parsed(frame) as unknown as Chunk).choices[0]?.delta.content ?? '')
  return answerIn(pieces.join(''), answer, says)
}

interface Chunk {
  choices: { delta: { content?: string } }[]
}

const contentOf = (text: string): string | undefined =>
  (parsed(text) as { choices?: { message: { content: string } }[] }).choices?.[0]?.message.content

function parsed(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return {} // its shape then says that it is not what was asked for
  }
}

/** A client that found nobody, or no place, comes back a little later. */
export const comeBack = (): Promise<void> => sleep(1_000)
