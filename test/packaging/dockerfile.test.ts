/** The Dockerfile: its stages resolve, what it copies is there, and the program in it is not root's. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Copy, DockerfileParser, type From, type Instruction } from 'dockerfile-ast'
import { describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'

const dockerfile = DockerfileParser.parse(readFileSync(join(packageRoot(), 'Dockerfile'), 'utf8'))
const instructions = dockerfile.getInstructions()
const of = (keyword: string): Instruction[] => instructions.filter((each) => each.getKeyword() === keyword)
const stages = (of('FROM') as From[]).map((from) => from.getBuildStage())
/** The last stage: what an image is made of. */
const last = instructions.slice(instructions.lastIndexOf(of('FROM').at(-1) as Instruction))
const lastOf = (keyword: string): string | undefined =>
  last.findLast((each) => each.getKeyword() === keyword)?.getArgumentsContent() ?? undefined

describe('the Dockerfile', () => {
  it('has only instructions that there are, and begins from images of Node.js that penstock runs on', () => {
    const known =
      'ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK RUN SHELL STOPSIGNAL USER VOLUME WORKDIR LABEL'.split(' ')
    expect(instructions.map((each) => each.getKeyword()).filter((keyword) => !known.includes(keyword))).toEqual([])
    for (const from of of('FROM') as From[]) expect(from.getImage()).toMatch(/^node:2[02]-bookworm(-slim)?$/)
  })

  it('copies from stages that come before, and from a repository that has it', () => {
    for (const copy of of('COPY') as Copy[]) {
      const from = copy.getFromFlag()?.getValue()
      const sources = copy
        .getArguments()
        .slice(0, -1)
        .map((argument) => argument.getValue())
      expect(sources.length).toBeGreaterThan(0)
      if (from) {
        const earlier = stages.slice(
          0,
          (of('FROM') as From[]).filter((each) => each.isBefore(copy.getRange().start.line)).length - 1,
        )
        expect(earlier).toContain(from)
      } else for (const source of sources) expect(existsSync(join(packageRoot(), source)), source).toBe(true)
    }
  })

  it('builds from all that the repository has for it, and from nothing that is made', () => {
    const rules = readFileSync(join(packageRoot(), '.dockerignore'), 'utf8').trim().split('\n')
    const taken = rules.filter((rule) => rule.startsWith('!')).map((rule) => rule.slice(1))
    expect(rules[0]).toBe('*')
    expect(rules).toEqual(expect.arrayContaining(['**/node_modules', '**/dist', '**/build']))
    const { files, workspaces } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8'))
    const made = ['dist', 'prebuilds', 'man', 'completions']
    const needed = [...files, ...workspaces]
      .map((path: string) => path.split('/')[0] as string)
      .filter((path) => !path.startsWith('!') && !made.includes(path))
    for (const path of [
      ...needed,
      'package.json',
      'package-lock.json',
      'tsconfig.json',
      'tsconfig.build.json',
      'bench',
    ]) {
      expect(taken, path).toContain(path)
    }
  })

  it('runs the program as a user who is not root, with its state in a volume', () => {
    expect(lastOf('USER')).toBe('penstock')
    expect(lastOf('VOLUME')).toBe('/var/lib/penstock')
    expect(lastOf('ENV')).toContain('PENSTOCK_DATA_DIRECTORY=/var/lib/penstock')
    expect(lastOf('STOPSIGNAL')).toBe('SIGTERM')
    expect(JSON.parse(lastOf('ENTRYPOINT') as string)).toEqual(['penstock'])
    expect(lastOf('HEALTHCHECK')).toMatch(/CMD \["penstock", "status"\]$/)
  })

  it('has steps that sh reads', () => {
    for (const step of of('RUN')) {
      const script = (step.getArgumentsContent() as string).replaceAll('\\\n', ' ')
      expect(spawnSync('sh', ['-n', '-c', script], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
    }
  })

  it('has the library for fast encryption where there is one, and no lists of packages', () => {
    const step = last.find((each) => each.getArgumentsContent()?.includes('libipsec-mb1'))?.getArgumentsContent()
    /** What the step does on an architecture, a line for each command (bash takes functions of such names). */
    const commands = (architecture: string): string[] => {
      const answers = `dpkg() { echo ${architecture}; }; apt-get() { echo "apt-get $*"; }; rm() { echo "rm $*"; }; `
      const { status, stdout } = spawnSync('bash', ['-c', answers + step], { encoding: 'utf8' })
      expect(status).toBe(0)
      return stdout.split('\n').filter((line) => line !== '')
    }
    expect(commands('arm64')).toEqual([])
    const [update, install, remove] = commands('amd64')
    expect(update).toMatch(/^apt-get update\b/)
    expect(install).toMatch(/^apt-get install .*-\w*y.* libipsec-mb1$/)
    expect(remove).toMatch(/^rm -rf \/var\/lib\/apt\/lists\//)
  })

  it('is given settings that a node takes', () => {
    const variables = Object.fromEntries(
      [...(lastOf('ENV') as string).matchAll(/(PENSTOCK_\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
    )
    const settings = execFileSync(process.execPath, ['bin/penstock.js', 'config', 'check', '-o', 'json'], {
      cwd: packageRoot(),
      encoding: 'utf8',
      env: { PATH: process.env.PATH, ...variables },
    })
    for (const value of Object.values(variables)) expect(settings).toContain(value as string)
  })
})
