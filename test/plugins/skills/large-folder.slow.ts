// A skills folder with more files than are scanned.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { readSkills } from '../../../plugins/skills/read-skills.ts'
import { removeFolders } from '../../config/folder.ts'
import { skill, writeSkills } from './serve-skills.ts'

describe('Large skills folder', () => {
  after(removeFolders)

  it('stops the scan at 50,000 entries', async () => {
    const folder = await writeSkills({ 'demo/SKILL.md': skill('demo') })
    for (let part = 0; part < 101; part++) {
      const at = join(folder, 'skills/demo', String(part))
      mkdirSync(at)
      for (let file = 0; file < 500; file++) writeFileSync(join(at, `${file}.md`), '')
    }
    const faults: string[] = []
    await readSkills(join(folder, 'skills'), 'skills', ({ message }) => faults.push(message))
    expect(faults.join()).to.include('more than 50,000 files and folders')
  })
})
