import type { Service } from './process.ts'

/** True when a Docker daemon (or what stands in for one) can be reached. */
export async function hasDocker(): Promise<boolean> {
  // loaded only when asked for: the client alone takes longer to load than a local server to start
  const { getContainerRuntimeClient } = await import('testcontainers')
  return getContainerRuntimeClient().then(
    () => true,
    () => false,
  )
}

export async function natsContainer(): Promise<Service> {
  const { GenericContainer } = await import('testcontainers')
  const container = await new GenericContainer('nats:2.11-alpine').withCommand(['-js']).withExposedPorts(4222).start()
  return {
    url: `nats://${container.getHost()}:${container.getMappedPort(4222)}`,
    origin: 'container',
    stop: async () => void (await container.stop()),
  }
}

export async function postgresContainer(settings: string[]): Promise<Service> {
  const { PostgreSqlContainer } = await import('@testcontainers/postgresql')
  const container = await new PostgreSqlContainer('postgres:17-alpine').withCommand(['postgres', ...settings]).start()
  return {
    url: container.getConnectionUri(),
    origin: 'container',
    stop: async () => void (await container.stop()),
  }
}
