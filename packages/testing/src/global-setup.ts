import type {} from 'vitest'
import type { TestProject } from 'vitest/node'
import { embeddedTemplate } from './embedded.ts'
import { startNats, startPostgres } from './services.ts'

declare module 'vitest' {
  interface ProvidedContext {
    natsUrl: string
    postgresUrl: string
  }
}

/** One real NATS and one real Postgres for the whole run; each test file takes a prefix and a database of its own there. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // The template too: no test has the time to make it.
  const [nats, postgres] = await Promise.all([startNats(), startPostgres(), embeddedTemplate()])
  console.log(`tests run against NATS (${nats.origin}) and Postgres (${postgres.origin})`)
  project.provide('natsUrl', nats.url)
  project.provide('postgresUrl', postgres.url)
  return async () => {
    await Promise.all([nats.stop(), postgres.stop()])
  }
}
