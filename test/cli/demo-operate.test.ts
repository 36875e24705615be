/** `npm run demo:operate`, as it is run: everything it promises is seen. */
import { expect, it } from 'vitest'
import { penstock } from './cli.ts'

it('runs commands, follows a KPI, writes log and memory, refuses a start and restarts what breaks', {
  timeout: 60_000,
}, async () => {
  const { code, stdout, stderr } = await penstock(['demo-operate'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  for (const line of [
    /on_setup +sets uplink up\nhook +pre_start +checks uplink\nhook +post_start tells that uplink is up/,
    /kpi +loss +[0-4]\.\d %\nupdate/,
    /in the same run[\s\S]*kpi +loss +(1[5-9]|2[0-4])\.\d %\n/,
    /lines in files\/operate\.log/,
    /metrics in files\/operate\.shm, the run is on/,
    /pre_stop +tells that uplink goes down\nhook +post_stop +cleans up behind uplink\nstop +ended: STOPPED/,
    /refused +ABORTED: .*pre_start command 1 .* ended with exit code 3/,
    /broken[\s\S]*started again in 1\.0 s[\s\S]*started again in 2\.0 s[\s\S]*no restart is left/,
    /all of it was seen/,
  ]) {
    expect(stdout).toMatch(line)
  }
})
