//! One connection of QEMU's: what it says about memory and queues, in the vhost-user protocol's order.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use seawall_media::locks::lock;
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight,
    VhostUserLog, VhostUserMemoryRegion, VhostUserProtocolFeatures as Protocol, VhostUserShMemConfig,
    VhostUserSharedMsg, VhostUserSingleMemoryRegion, VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{Error, GpuBackend, Result, VhostUserBackendReqHandlerMut};
use vm_memory::{GuestAddressSpace, GuestMemoryAtomic};

use crate::config::feature;
use crate::dirty::Pages;
use crate::disk::Disk;
use crate::failure::Refused;
use crate::inflight;
use crate::memory::{Memory, Shared};
use crate::ring::{Ring, Setup, tell};
use crate::vring::{QUEUE_MAX, Vring};

/// Stretches of memory that QEMU may share one by one.
const SLOTS: u64 = 509;
/// So long whoever has the image is waited for when a guest arrives.
const ARRIVAL: Duration = Duration::from_secs(10);

/// A guest that is connected.
pub struct Session {
    disk: Arc<Disk>,
    shared: Shared,
    pages: Arc<Pages>,
    memory: Option<GuestMemoryAtomic<Memory>>,
    features: u64,
    queues: Vec<Vring>,
    inflight: Option<Arc<inflight::Shared>>,
}

impl Session {
    /// A guest of this disk.
    pub fn new(disk: Arc<Disk>) -> Self {
        let queues = (0..disk.options().queues).map(|_| Vring::default()).collect();
        let (shared, pages) = (Shared::default(), Arc::default());
        Self { disk, shared, pages, memory: None, features: 0, queues, inflight: None }
    }

    fn queue(&mut self, index: u32) -> Result<&mut Vring> {
        self.queues.get_mut(index as usize).ok_or(Error::InvalidParam)
    }

    /// What is served sees the memory as it is now from its next request on.
    fn has_changed(&mut self) -> Result<()> {
        let now = self.shared.memory().ok_or(Error::InvalidParam)?;
        match &self.memory {
            Some(memory) => lock_update(memory, now),
            None => self.memory = Some(GuestMemoryAtomic::new(now)),
        }
        Ok(())
    }

    /// Serves a queue of which everything is known.
    fn try_start(&mut self, index: usize) -> Result<()> {
        let has_protocol = self.features & feature::PROTOCOL != 0;
        let vring = self.queues.get_mut(index).ok_or(Error::InvalidParam)?;
        let is_wanted = vring.is_enabled || !has_protocol;
        let (Some(memory), Some(rings), Some(kick)) = (&self.memory, vring.rings, &vring.kick) else {
            return Ok(());
        };
        if vring.ring.is_some() || !is_wanted {
            return Ok(());
        }
        let has_event_idx = self.features & feature::EVENT_IDX != 0;
        let queue = vring.laid_out(rings, &memory.memory(), has_event_idx)?;
        let tracker = self.inflight.as_ref().map(|shared| shared.queue(index as u16, vring.size));
        let tracker = match tracker {
            Some(None) => return Err(Error::InvalidParam),
            known => known.flatten(),
        };
        let kick = kick.try_clone().map_err(Error::ReqHandlerError)?;
        // A guest that arrives from another machine, which has let go of it by now; or one that comes back.
        self.disk.image.take(ARRIVAL).map_err(refused)?;
        let call = Arc::clone(&vring.call);
        let setup = Setup { index, queue, kick, call, tracker };
        let ring =
            Ring::start(Arc::clone(&self.disk), memory.clone(), setup).map_err(Error::ReqHandlerError)?;
        vring.ring = Some(ring);
        Ok(())
    }

    /// A guest that QEMU moves has stopped: its image is the other machine's.
    fn let_go(&self) -> Result<()> {
        let has_stopped = self.queues.iter().all(|vring| vring.ring.is_none());
        if has_stopped && self.pages.are_wanted() {
            self.disk.image.let_go().map_err(refused)
        } else {
            Ok(())
        }
    }

    fn stop_all(&mut self) {
        self.queues.iter_mut().for_each(Vring::stop);
    }
}

/// Said here too: QEMU has no words of ours.
fn refused(why: Refused) -> Error {
    errln!("seawall: {why}");
    Error::ReqHandlerError(std::io::Error::other(why))
}

fn lock_update(memory: &GuestMemoryAtomic<Memory>, now: Memory) {
    if let Ok(lock) = memory.lock() {
        lock.replace(now);
    }
}

impl VhostUserBackendReqHandlerMut for Session {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        self.stop_all();
        Ok(())
    }

    fn reset_device(&mut self) -> Result<()> {
        self.stop_all();
        self.queues.iter_mut().for_each(|vring| *vring = Vring::default());
        Ok(())
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(self.disk.features())
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        if features & !self.disk.features() != 0 {
            return Err(Error::FeatureMismatch);
        }
        self.features = features;
        self.pages.want(features & feature::LOG_ALL != 0);
        // A driver that cannot flush is to find every write durable: a BIOS, before the system's own driver comes.
        self.disk.has_cache.store(features & feature::FLUSH != 0, Relaxed);
        Ok(())
    }

    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _postcopy: Option<bool>,
    ) -> Result<Option<Vec<u64>>> {
        let mut shared = Shared::default();
        for (region, file) in regions.iter().zip(files) {
            if !shared.add(region, file, &self.pages) {
                return Err(Error::InvalidParam);
            }
        }
        self.shared = shared;
        self.has_changed().map(|()| None)
    }

    fn add_mem_region(
        &mut self,
        region: &VhostUserSingleMemoryRegion,
        file: File,
        _postcopy: Option<bool>,
    ) -> Result<Option<u64>> {
        match self.shared.add(region, file, &self.pages) {
            true => self.has_changed().map(|()| None),
            false => Err(Error::InvalidParam),
        }
    }

    fn remove_mem_region(&mut self, region: &VhostUserSingleMemoryRegion) -> Result<()> {
        if !self.shared.remove(region) {
            return Err(Error::InvalidParam);
        }
        // The last one goes with its guest.
        let _ = self.has_changed();
        Ok(())
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        Ok(SLOTS)
    }

    fn set_vring_num(&mut self, index: u32, num: u32) -> Result<()> {
        let size = u16::try_from(num).ok().filter(|size| size.is_power_of_two() && *size <= QUEUE_MAX);
        self.queue(index)?.size = size.ok_or(Error::InvalidParam)?;
        Ok(())
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        _flags: VhostUserVringAddrFlags,
        descriptor: u64,
        used: u64,
        available: u64,
        _log: u64,
    ) -> Result<()> {
        let guest = |user: u64| self.shared.guest_address(user).ok_or(Error::InvalidParam);
        let rings = [guest(descriptor)?, guest(available)?, guest(used)?];
        self.queue(index)?.rings = Some(rings);
        Ok(())
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        self.queue(index)?.base = base as u16;
        Ok(())
    }

    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        let vring = self.queue(index)?;
        vring.stop();
        (vring.kick, vring.rings) = (None, None);
        *lock(&vring.call) = None;
        let base = u32::from(vring.base);
        self.let_go()?;
        Ok(VhostUserVringState::new(index, base))
    }

    fn set_vring_kick(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        let vring = self.queue(index.into())?;
        vring.stop();
        vring.kick = fd;
        self.try_start(index.into())
    }

    /// Notifies the guest at once, so that it looks for answers: the former process may have been killed behind one, before
    /// it notified the guest, which would wait for ever.
    fn set_vring_call(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        let vring = self.queue(index.into())?;
        if let Some(call) = &fd {
            tell(call);
        }
        *lock(&vring.call) = fd;
        Ok(())
    }

    fn set_vring_err(&mut self, index: u8, _fd: Option<File>) -> Result<()> {
        self.queue(index.into()).map(drop)
    }

    fn get_protocol_features(&mut self) -> Result<Protocol> {
        Ok(Protocol::MQ
            | Protocol::LOG_SHMFD
            | Protocol::CONFIG
            | Protocol::REPLY_ACK
            | Protocol::INFLIGHT_SHMFD
            // By which it hears of another size: `back`.
            | Protocol::BACKEND_REQ
            | Protocol::CONFIGURE_MEM_SLOTS)
    }

    fn set_protocol_features(&mut self, _features: u64) -> Result<()> {
        Ok(())
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(self.queues.len() as u64)
    }

    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        let vring = self.queue(index)?;
        vring.is_enabled = enable;
        if !enable {
            vring.stop();
            return Ok(());
        }
        self.try_start(index as usize)
    }

    fn get_config(&mut self, offset: u32, size: u32, _flags: VhostUserConfigFlags) -> Result<Vec<u8>> {
        let mut all = self.disk.config().to_vec();
        // QEMU asks for what its own version of the structure has.
        let end = offset.checked_add(size).filter(|end| *end <= 256).ok_or(Error::InvalidParam)? as usize;
        all.resize(all.len().max(end), 0);
        Ok(all[offset as usize..end].to_vec())
    }

    fn set_config(&mut self, _offset: u32, _buf: &[u8], _flags: VhostUserConfigFlags) -> Result<()> {
        // There is nothing that a guest may change.
        Err(Error::InvalidParam)
    }

    fn get_inflight_fd(&mut self, wanted: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        let (queues, size) = (wanted.num_queues, wanted.queue_size);
        if usize::from(queues) > self.queues.len() || size > QUEUE_MAX {
            return Err(Error::InvalidParam);
        }
        let (shared, file, bytes) = inflight::Shared::make(queues, size).map_err(Error::ReqHandlerError)?;
        self.inflight = Some(shared);
        Ok((VhostUserInflight::new(bytes, 0, queues, size), file))
    }

    fn set_inflight_fd(&mut self, had: &VhostUserInflight, file: File) -> Result<()> {
        if had.mmap_offset != 0 {
            return Err(Error::InvalidParam);
        }
        let shared = inflight::Shared::map(&file, had.mmap_size, had.num_queues, had.queue_size);
        self.inflight = Some(shared.map_err(Error::ReqHandlerError)?);
        Ok(())
    }

    fn set_gpu_socket(&mut self, _gpu: GpuBackend) -> Result<()> {
        Err(NOT_A_DISK)
    }

    fn get_shared_object(&mut self, _uuid: VhostUserSharedMsg) -> Result<File> {
        Err(NOT_A_DISK)
    }

    fn set_device_state_fd(
        &mut self,
        _direction: VhostTransferStateDirection,
        _phase: VhostTransferStatePhase,
        _fd: File,
    ) -> Result<Option<File>> {
        Err(NOT_A_DISK)
    }

    fn check_device_state(&mut self) -> Result<()> {
        Err(NOT_A_DISK)
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        Err(NOT_A_DISK)
    }

    fn set_log_base(&mut self, log: &VhostUserLog, file: File) -> Result<()> {
        let kept = self.pages.keep_in(file, log.mmap_offset, log.mmap_size);
        kept.map_err(Error::ReqHandlerError)
    }
}

const NOT_A_DISK: Error = Error::InvalidOperation("Seawall's disks cannot do that");
