// Node 22.18 and later run TypeScript as it is; on Node 20 tsx does it.
if (!process.features.typescript) (await import('tsx/esm/api')).register()
