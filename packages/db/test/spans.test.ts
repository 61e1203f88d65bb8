import { trace } from '@opentelemetry/api'
import { startTelemetry } from '@tollgate/telemetry'
import { startOtlp } from '@tollgate/testing'
import { sql } from 'kysely'
import { expect, test } from 'vitest'
import { kinds, log, open } from './databases.ts'

test('statements inside a recorded span show their text and never a parameter, on both databases', async () => {
  const otlp = await startOtlp()
  const telemetry = startTelemetry({ service: 'test', version: '1', log, otlpEndpoint: otlp.url })
  for (const kind of kinds) {
    const { db, close } = await open(kind)
    const find = db.prepare('find_thing', 'select $1::text as thing')
    await sql`select ${'unseen'}::text`.execute(db.kysely)
    await trace.getTracer('test').startActiveSpan(kind, async (outer) => {
      await sql`select ${'canary'}::text as mine`.execute(db.kysely)
      await find(['canary'])
      await expect(sql`select ${'canary'}::int4`.execute(db.kysely)).rejects.toThrow()
      outer.end()
    })
    await close()
  }
  await telemetry.shutdown()

  for (const kind of kinds) {
    const outer = otlp.spans.find(({ name }) => name === kind)
    const inner = otlp.spans.filter(({ parentSpanId }) => parentSpanId === outer?.spanId)
    expect(inner.map(({ name }) => name)).toEqual(['SELECT', 'find_thing', 'SELECT'])
    expect(inner.every((span) => span.scope === '@tollgate/db' && span.kind === 3)).toBe(true)
    expect(inner[0]?.attributes).toMatchObject({
      'db.query.text': 'select $1::text as mine',
      'db.operation.name': 'SELECT',
    })
    expect(inner[2]?.attributes).toMatchObject({ 'error.type': '22P02' })
  }
  expect(otlp.spans).toHaveLength(kinds.length * 4)
  expect(otlp.spans.map(({ text }) => text).join()).not.toContain('canary')
  await otlp.stop()
})
