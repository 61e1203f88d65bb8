export type { Database, Statement } from './database.ts'
export { type MigrateOptions, migrate } from './migrate.ts'
export { type OpenOptions, openDb } from './open.ts'
