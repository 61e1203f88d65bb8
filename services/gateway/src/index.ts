export { ensureFirstKey, ensureMasterKey, migrateGateway } from './auth/first-start.ts'
export { type GatewayNeeds, startGateway } from './gateway.ts'
export type { ProviderSettings } from './models/registry.ts'
export { defaultSettings, type GatewaySettings } from './settings.ts'
