export { effectiveConfig } from './effective.ts'
export { ConfigError, type Loaded, loadConfig } from './load.ts'
export { type Config, configSchema } from './schema.ts'
