/** `npm run bench` measures all, `npm run bench -- chat` one. Everything runs on this machine, side by side, as ratios. */
const benches: Record<string, () => Promise<void>> = {
  chat: async () => (await import('./chat.ts')).benchChat(process.argv.slice(3)),
  tools: async () => (await import('./tools.ts')).benchTools(),
  extract: async () => (await import('./extract.ts')).benchExtract(process.argv.slice(3)),
  fetch: async () => (await import('./fetch.ts')).benchFetch(process.argv.slice(3)),
  pdf: async () => (await import('./pdf.ts')).benchPdf(process.argv.slice(3)),
  sandbox: async () => (await import('./sandbox.ts')).benchSandbox(process.argv.slice(3)),
}

const [wanted] = process.argv.slice(2)
if (wanted !== undefined && !(wanted in benches)) {
  console.error(`no bench '${wanted}'; there are: ${Object.keys(benches).join(', ')}`)
  process.exit(2)
}
for (const [name, bench] of Object.entries(benches)) {
  if (wanted !== undefined && wanted !== name) continue
  console.log(`\n## ${name}`)
  await bench()
}
process.exit(0)
