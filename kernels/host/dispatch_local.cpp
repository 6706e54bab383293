#include "kernels/host/dispatch_roles.hpp"

namespace railhead::kernels {

Step LocalRole::step(std::uint32_t rank, std::uint16_t domain, const Plan& plan, const TokenData& data,
                     RowWriter& writer, std::vector<RowUse>& uses) {
  const auto runs = plan.runs(domain, channel_);
  for (std::uint32_t budget = kStepRecords; budget > 0 && next_ < runs.size(); --budget, ++next_) {
    const Run& run = runs[next_];
    uses.clear();
    for (const Placement& p : plan.placements(run)) {
      uses.push_back({p.local_rank, p.expert, p.slot, p.expert_ordinal, p.rank_ordinal, p.weight});
    }
    writer.write(rank, run.token, uses.data(), run.count, data.row(run.token), data.side_of(run.token));
  }
  return next_ == runs.size() ? Step::done : Step::progressed;
}

}  // namespace railhead::kernels
