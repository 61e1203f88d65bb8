export * from './health.ts'
export * from './lifecycle.ts'
export type * from './service.ts'
