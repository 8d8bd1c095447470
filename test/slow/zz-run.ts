import { spawn } from 'node:child_process'
import { once } from 'node:events'
Object.assign(globalThis, { describe: () => {} })
const { KINDS } = await import('./zz-probe.ts')
const child = spawn(process.execPath, ['--expose-gc', '--import', 'tsx', 'test/support/soak-host.ts'], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
const [{ url }] = (await once(child, 'message')) as any
const measure = async () => { const a = once(child, 'message'); child.send('measure'); return ((await a) as any)[0] }
const each = async (kind: any, n: number) => { let left = n; await Promise.all(Array.from({ length: 24 }, async () => { while (left-- > 0) await kind(url) })) }
for (const kind of Object.values(KINDS)) await each(kind, 100)
await measure()
for (const name of ['opens a session', 'goes before a call is answered', 'calls a tool that asks']) {
  const kind = KINDS[name]
  const heaps = []
  for (let round = 0; round < 7; round++) { await each(kind, 1500); heaps.push((await measure()).heap) }
  console.log(name.padEnd(45), heaps.map((h, i) => i === 0 ? 0 : Math.round((h - heaps[i-1]) / 1500)).join(' '), 'avg', Math.round((heaps.at(-1) - heaps[0]) / 1500 / 6))
}
child.kill()
