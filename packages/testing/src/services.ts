import { hasDocker, natsContainer, postgresContainer } from './docker.ts'
import { natsFromProgram } from './nats-server.ts'
import { postgresFromProgram, postgresSettings } from './postgres-server.ts'
import type { Service } from './process.ts'

/** A real NATS server with JetStream: the one named in TEST_NATS_URL, else a container, else a program found or fetched. */
export const startNats = (): Promise<Service> => first(process.env.TEST_NATS_URL, natsContainer, natsFromProgram)

/** A real Postgres: the one named in TEST_POSTGRES_URL, else a container, else a program found or shipped by npm. */
export const startPostgres = (): Promise<Service> =>
  first(process.env.TEST_POSTGRES_URL, () => postgresContainer(postgresSettings), postgresFromProgram)

async function first(
  given: string | undefined,
  container: () => Promise<Service>,
  program: () => Promise<Service>,
): Promise<Service> {
  if (given) return { url: given, origin: 'environment', stop: async () => undefined }
  if (!(await hasDocker())) return program()
  // a daemon may answer and yet have no way to pull the image
  return container().catch(program)
}
